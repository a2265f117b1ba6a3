from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from gasp_core.identity import ScorerIdentity
from gasp_core.text.languages import ToldLanguage
from tests.integration.store_examples import (
    BROKER_TIME_MS,
    IDENTITY,
    OCCURRED_AT,
    OTHER_IDENTITY,
    TOPIC,
    advance,
    attributed,
    dead_letter,
    prepared,
    rows,
    scored,
    scores_of,
    skipped,
)
from worker.rules.opinion import Opinion, OpinionLabel
from worker.rules.settlement import Outcome
from worker.store.sentences import SentenceRow
from worker.store.store import Store


def _sentences(store: Store, interaction_id: str) -> list[SentenceRow]:
    return list(store.sentences.rows(app="shop", interaction_ids=[interaction_id]))


def test_the_rows_of_an_answer_cut_it_into_its_sentences(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.75, 0.01, None], threshold)], [advance(0, 1)])
    found = _sentences(store, "a")
    assert [row.sentence_index for row in found] == [0, 1, 2]
    assert "".join(row.text for row in found) == found[0].answer
    assert all(row.text == row.answer[row.start_char : row.end_char] for row in found)
    first = found[0]
    assert (first.time, first.app, first.interaction_id, first.revision) == (OCCURRED_AT, "shop", "a", 1)
    assert (first.kind, first.n_tokens, first.score, first.gap, first.flagged) == ("prose", 4, 0.75, -0.75, False)
    assert (first.jsd_no_context, first.surprisal, first.skip_reason) == (0.25, 1.5, None)
    assert (first.threshold_version, first.scorer, first.scorer_id) == ("*/1", IDENTITY.label, scorer_id)
    assert (found[2].score, found[2].gap, found[2].flagged, found[2].skip_reason) == (None, None, None, "too_short")


def test_the_words_that_are_grounded_least_are_shown_and_may_be_missing(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    plain = scored(0, "a", [0.01, 0.9, None], threshold)
    assert plain.grounding is not None
    first, *others = plain.grounding.sentences
    worst = (first.sentence.start + 2, first.sentence.end - 1)
    found = replace(plain.grounding, sentences=(replace(first, worst=worst), *others))
    store.settlements.settle(scorer_id, [replace(plain, grounding=found)], [advance(0, 1)])
    shown = _sentences(store, "a")
    assert [(row.worst_start, row.worst_end) for row in shown] == [worst, (None, None), (None, None)]
    for view in ("v_sentences", "v_flagged_sentences"):
        words = rows(database_url, f"SELECT worst_text FROM {view} WHERE worst_start IS NOT NULL")
        assert words == [{"worst_text": shown[0].answer[slice(*worst)]}]


def test_the_language_of_an_answer_is_shown_and_may_be_missing(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    told = {"a": ToldLanguage("de", is_supported=True), "b": ToldLanguage("und-Cyrl", is_supported=False), "c": None}
    batch = []
    for offset, (name, language) in enumerate(told.items()):
        plain = scored(offset, name, [0.9], threshold)
        assert plain.verdict is not None
        batch.append(replace(plain, verdict=replace(plain.verdict, language=language)))
    store.settlements.settle(scorer_id, batch, [advance(0, 3)])
    for view in ("v_interactions", "v_verdicts", "v_sentences"):
        found = rows(database_url, f"SELECT interaction_id, language, language_supported FROM {view} ORDER BY 1")
        assert [tuple(row.values()) for row in found] == [
            ("a", "de", True),
            ("b", "und-Cyrl", False),
            ("c", None, None),
        ]


def test_the_state_of_attribution_is_said_for_each_sentence(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    batch = [
        scored(0, "open", [0.03, None], threshold),
        scored(1, "high", [0.9], threshold),
        scored(2, "fails", [0.02], threshold),
        scored(3, "done", [0.01, 0.9, None], threshold),
        skipped(4, "skipped", threshold),
    ]
    store.settlements.settle(scorer_id, batch, [advance(0, 5)])
    done = store.attribution_jobs.claim("w", scorer_id, 60, 3)
    fails = store.attribution_jobs.claim("w", scorer_id, 60, 3)
    running = store.attribution_jobs.claim("w", scorer_id, 60, 3)
    assert done
    assert fails
    assert running
    store.attribution_jobs.finish(done, attributed([0.01, 0.9, None], [[0.02, -0.2], [0.1, 0.7], []]))
    store.leases.fail(fails, "OutOfMemoryError")
    states = {
        name: [row.attribution for row in _sentences(store, name)]
        for name in ("open", "high", "fails", "done", "skipped")
    }
    assert states == {
        "open": ["waiting", "not_wanted"],
        "high": ["not_wanted"],
        "fails": ["failed"],
        "done": ["none_reacts", "supported", "not_wanted"],
        "skipped": ["not_wanted"],
    }
    none_reacts, supported, _ = _sentences(store, "done")
    assert (none_reacts.supporting_passage_id, none_reacts.supporting_drop) == (None, 0.02)
    assert (supported.supporting_passage_id, supported.supporting_passage_position) == ("p1", 1)
    assert supported.supporting_drop == 0.7
    assert (none_reacts.contradicting_passage_id, none_reacts.contradicting_drop) == ("p1", -0.2)
    assert (supported.contradicting_passage_id, supported.contradicting_drop) == (None, None)


def test_passages_that_stand_in_for_each_other_are_all_shown_and_counted(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    scores = [-1.9, -1.9, 0.01]
    # The example turns gaps round: these are two of 1.9, which no single one of the drops explains, and one of nothing.
    for offset, (name, drops, passages) in enumerate(
        (("two", [[0.02, 0.08], [0.1, 1.5], [0.0, 0.0]], 2), ("four", [[0.08, 0.1, 0.0, 0.2]] * 2 + [[0.0] * 4], 4))
    ):
        batch = [scored(offset, name, scores, threshold, passages=passages)]
        store.settlements.settle(scorer_id, batch, [advance(offset, offset + 1)])
        job = store.attribution_jobs.claim("w", scorer_id, 60, 3)
        assert job
        assert store.attribution_jobs.finish(job, attributed(scores, drops))
    both, one, none = _sentences(store, "two")
    assert (both.attribution, both.supporting_passage_id, both.supporting_drop) == ("supported", "p1", 1.9)
    assert (both.supporting_passage_ids, both.supporting_passage_positions) == (["p0", "p1"], [0, 1])
    assert (one.supporting_passage_ids, one.supporting_drop) == (["p1"], 1.5)
    assert (none.attribution, none.supporting_passage_ids, none.supporting_passage_positions) == ("none_reacts", [], [])
    spread = _sentences(store, "four")[0]
    assert (spread.attribution, spread.supporting_passage_id, spread.supporting_passage_ids) == ("unlocated", None, [])
    assert spread.supporting_drop == 0.2
    used = "SELECT passage_id, sentences_supported FROM v_chunk_usage WHERE answers = 2 ORDER BY 1"
    assert [tuple(row.values()) for row in rows(database_url, used)] == [("p0", 1), ("p1", 2)]
    shown = (
        "SELECT supporting_passage_ids FROM v_flagged_sentences WHERE interaction_id = 'two' ORDER BY sentence_index"
    )
    assert [row["supporting_passage_ids"] for row in rows(database_url, shown)] == [["p0", "p1"], ["p1"], []]


def test_of_an_answer_that_an_older_worker_attributed_the_one_passage_is_shown(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.01, 0.02], threshold)], [advance(0, 1)])
    job = store.attribution_jobs.claim("w", scorer_id, 60, 3)
    assert job
    store.attribution_jobs.finish(job, attributed([0.01, 0.02], [[0.4, 0.2], [0.0, 0.0]]))
    rows(database_url, "UPDATE sentences SET supporting_passages = NULL, support_unlocated = NULL RETURNING 1")
    found = _sentences(store, "a")
    assert [(row.attribution, row.supporting_passage_ids) for row in found] == [
        ("supported", ["p0"]),
        ("none_reacts", []),
    ]


def test_the_views_show_one_verdict_of_an_answer_and_v_verdicts_all(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    other_id, other = prepared(store, OTHER_IDENTITY)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    store.settlements.settle(scorer_id, [scored(1, "a", [0.9, 0.8], threshold, edition="new ")], [advance(1, 2)])
    store.settlements.settle(other_id, [scored(2, "a", [0.7, 0.6], other, edition="new ")], [advance(2, 3)])
    found = list(store.sentences.rows())
    assert [(row.revision, row.scorer_id, row.score) for row in found] == [(2, other_id, 0.7), (2, other_id, 0.6)]
    assert list(store.sentences.rows(scorer_id=scorer_id)) == []
    assert rows(database_url, "SELECT revision, scorer_id FROM v_interactions") == [
        {"revision": 2, "scorer_id": other_id}
    ]
    for view in ("v_rates_5m", "v_rates_1d"):
        (bucket,) = rows(database_url, f"SELECT scorer_id, interactions, sentences FROM {view}")
        assert bucket == {"scorer_id": other_id, "interactions": 1, "sentences": 2}
    all_of_them = "SELECT revision, scorer_id, lowest_score, is_current FROM v_verdicts ORDER BY verdict_id"
    assert [tuple(row.values()) for row in rows(database_url, all_of_them)] == [
        (1, scorer_id, 0.9, False),
        (2, scorer_id, 0.8, False),
        (2, other_id, 0.6, True),
    ]


def test_usage_of_passages_and_second_opinions_are_those_of_the_last_verdict(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    other_id, other = prepared(store, OTHER_IDENTITY, partitions=0)
    flagged = (scored(0, "a", [0.01], threshold), scored(1, "a", [0.02], other))
    for offset, (scorer, one) in enumerate(zip((scorer_id, other_id), flagged, strict=True)):
        assert one.grounding is not None
        at_once = replace(one, grounding=attributed(scores_of(one.grounding), [[0.3, 0.2]]))
        store.settlements.settle(scorer, [at_once], [advance(offset, offset + 1)])
        assert store.opinion_jobs.queue(scorer, "another", daily=10, limit=10) == 1
        job = store.opinion_jobs.claim("worker-1", "another", 60, 3)
        assert job is not None
        assert store.opinion_jobs.finish(job, Opinion(OpinionLabel.PARTLY, 0.75, "another"))
    assert rows(database_url, "SELECT count(*) AS n FROM second_opinions") == [{"n": 2}]
    for view in ("v_chunk_usage", "v_second_opinions"):
        assert rows(database_url, f"SELECT DISTINCT scorer_id FROM {view}") == [{"scorer_id": other_id}]
    assert rows(database_url, "SELECT sum(answers) AS n FROM v_chunk_usage") == [{"n": 2}]


def test_rows_can_be_chosen_by_app_and_ids_and_come_in_the_order_of_storing(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    batch = [
        scored(n, name, [0.9], threshold, app=app)
        for n, (name, app) in enumerate([("b", "shop"), ("a", "shop"), ("a", "desk"), ("c", "shop")])
    ]
    for n, item in enumerate(batch):
        store.settlements.settle(scorer_id, [item], [advance(n, n + 1)])
    assert [row.interaction_id for row in store.sentences.rows(app="shop")] == ["b", "a", "c"]
    assert [row.app for row in store.sentences.rows(interaction_ids=["a"])] == ["shop", "desk"]
    assert list(store.sentences.rows(app="shop", interaction_ids=[])) == []


def test_many_rows_are_streamed_and_an_abandoned_iterator_gives_its_connection_back(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(n, f"id-{n}", [0.9] * 8, threshold) for n in range(200)]
    store.settlements.settle(scorer_id, batch, [advance(0, 200)])
    assert sum(1 for _ in store.sentences.rows()) == 1600
    for _ in range(20):
        opened = store.sentences.rows()
        assert len(list(islice(opened, 3))) == 3
        del opened
    assert store.server.ping()


def test_flagged_sentences_come_with_question_and_supporting_passage(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.01, 0.9], threshold)], [advance(0, 1)])
    waiting = rows(database_url, "SELECT * FROM v_flagged_sentences")
    assert [(row["sentence_index"], row["attribution"]) for row in waiting] == [(0, "waiting")]
    assert waiting[0]["question"] == "When does the train leave?"
    assert waiting[0]["supporting_passage_text"] is None
    job = store.attribution_jobs.claim("w", scorer_id, 60, 3)
    assert job
    store.attribution_jobs.finish(job, attributed([0.01, 0.9], [[0.4, 0.2], [0.1, 0.7]]))
    row = rows(database_url, "SELECT * FROM v_flagged_sentences")[0]
    assert (row["attribution"], row["supporting_passage_id"]) == ("supported", "p0")
    assert row["supporting_passage_text"] == "Passage 0 on trains."


def test_an_apps_own_threshold_names_the_verdict(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    sql = "INSERT INTO thresholds (app, scorer_id, version, flag_below, attribute_below, learned_from, activated_at,"
    rows(
        database_url,
        f"{sql} is_active) VALUES ('shop', %(scorer)s, 3, 0.2, 0.3, 'manual', now(), true)",
        scorer=scorer_id,
    )
    own = store.thresholds.in_force(scorer_id)["shop"]
    assert own.name == "shop/3"
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], own)], [advance(0, 1)])
    assert [row.threshold_version for row in _sentences(store, "a")] == [own.name]
    assert threshold.name == "*/1"


def test_an_interaction_has_one_row_with_its_counts_and_state(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(0, "a", [0.01, 0.9, None], threshold), skipped(1, "b", threshold), scored(2, "c", [0.9], threshold)]
    store.settlements.settle(scorer_id, batch, [advance(0, 3)])
    store.settlements.settle(scorer_id, [scored(3, "c", [0.8], threshold, edition="new ")], [advance(3, 4)])
    a, b, c = rows(database_url, "SELECT * FROM v_interactions ORDER BY interaction_id")
    assert (a["outcome"], a["lowest_score"], a["attribution"]) == ("scored", 0.01, "waiting")
    assert (a["n_sentences"], a["n_scored"], a["n_flagged"]) == (3, 2, 1)
    assert (a["context_truncated"], a["answer_truncated"], a["context_tokens_cut"]) == (True, False, 20)
    assert (a["time"], a["generator_model"], a["threshold_version"]) == (OCCURRED_AT, "writer-1", "*/1")
    assert (b["outcome"], b["skip_reason"], b["lowest_score"], b["attribution"]) == (
        "skipped",
        "no_passages",
        None,
        "not_wanted",
    )
    assert (c["revision"], c["lowest_score"]) == (2, 0.8)


def test_the_lag_of_each_partition_is_shown(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store, partitions=2)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    begun, waiting = rows(database_url, "SELECT * FROM v_ingest_lag ORDER BY partition")[0:2]
    assert (begun["topic"], begun["next_offset"], begun["end_offset"], begun["lag"]) == (TOPIC, 1, 6, 5)
    assert begun["last_broker_time"] == datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)
    assert 0 <= begun["seconds_since_update"] < 300
    assert (waiting["next_offset"], waiting["end_offset"], waiting["lag"]) == (0, None, None)


def test_dead_letters_are_listed_with_their_reason(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [dead_letter(0), scored(1, "a", [0.9], threshold)], [advance(0, 2)])
    row = rows(database_url, "SELECT * FROM v_dead_letters")[0]
    assert (row["topic"], row["partition"], row["record_offset"]) == (TOPIC, 0, 0)
    assert (row["reason"], row["detail"], row["value_bytes"]) == ("not_json", "line 1 column 1", 2)


def test_the_status_counts_outcomes_and_knows_each_partition(store: Store) -> None:
    scorer_id, threshold = prepared(store, partitions=2)
    batch = [dead_letter(0), scored(1, "a", [0.9], threshold), skipped(2, "b", threshold)]
    store.settlements.settle(scorer_id, batch, [advance(0, 3)])
    assert store.ledger.counts() == {
        (Outcome.DEAD_LETTERED, "not_json"): 1,
        (Outcome.SCORED, None): 1,
        (Outcome.SKIPPED, "no_passages"): 1,
    }
    begun, waiting = store.offsets.statuses()
    assert (begun.topic, begun.partition, begun.next_offset, begun.end_offset, begun.lag) == (TOPIC, 0, 3, 8, 5)
    assert (begun.owner, begun.generation) == ("worker-1", 3)
    assert (waiting.partition, waiting.end_offset, waiting.lag) == (1, None, None)


def test_each_part_of_a_scorer_identity_makes_it_another(store: Store) -> None:
    identities = [IDENTITY]
    identities += [
        ScorerIdentity(**{**{name: getattr(IDENTITY, name) for name in IDENTITY.__slots__}, name: "other"})
        for name in IDENTITY.__slots__
    ]
    ids = [store.scorers.register(identity) for identity in identities]
    assert len(set(ids)) == 6
    assert [store.scorers.register(identity) for identity in identities] == ids
