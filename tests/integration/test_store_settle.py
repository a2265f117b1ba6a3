from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, Executable

from schemas.interaction import Passage
from schemas.reject_reason import RejectReason
from schemas.replay import Replay
from tests.integration.store_examples import (
    BROKER_TIME_MS,
    IDENTITY,
    OCCURRED_AT,
    OTHER_IDENTITY,
    TOPIC,
    advance,
    answer_of,
    at,
    attributed,
    dead_letter,
    interaction,
    prepared,
    record,
    rows,
    scored,
    skipped,
)
from worker.rules.settlement import Outcome, Settled, Settlement
from worker.store.errors import StoreRejected
from worker.store.interactions import stored_revisions
from worker.store.revisions import ContentKey, StoredRevision
from worker.store.store import Store, open_store

REVISIONS = "SELECT interaction_id, revision, is_current FROM interactions ORDER BY interaction_id, revision"
LEDGER = "SELECT record_offset, outcome, reason, interaction_pk FROM ledger ORDER BY partition, record_offset"


def _count(url: str, table: str) -> int:
    return int(rows(url, f"SELECT count(*) AS n FROM {table}")[0]["n"])


def _together(*works: Callable[[], Settled]) -> list[Settled]:
    """Run the works in threads that begin at the same moment."""
    barrier = threading.Barrier(len(works), timeout=30)

    def begin(work: Callable[[], Settled]) -> Settled:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(begin, works))


def test_a_passage_that_is_no_evidence_is_stored_as_it_came_and_says_why_it_was_not_read(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    texts = ("It rains.", "\u200b", "<p></p>", "N/A")
    one = scored(0, "a", [0.5], threshold)
    assert one.decoded is not None
    passages = tuple(Passage(id=f"p{number}", text=text) for number, text in enumerate(texts))
    logged = one.decoded.interaction.model_copy(update={"passages": passages})
    settlement = replace(one, decoded=replace(one.decoded, interaction=logged))
    store.settlements.settle(scorer_id, [settlement], [advance(0, 1)])
    assert rows(database_url, "SELECT text, skip_reason FROM passages ORDER BY position") == [
        {"text": text, "skip_reason": reason}
        for text, reason in zip(texts, (None, "blank", "markup", "placeholder"), strict=True)
    ]


def test_a_scored_answer_is_stored_with_everything_that_was_logged_and_found(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    settlement = scored(0, "a", [0.75, 0.01, None], threshold)
    assert store.settlements.settle(scorer_id, [settlement], [advance(0, 1)]) == Settled(
        {(Outcome.SCORED, None): 1}, ()
    )

    assert settlement.decoded is not None
    logged = settlement.decoded.interaction
    stored = rows(database_url, "SELECT * FROM interactions")[0]
    assert stored["content_hash"].hex() == logged.content_hash
    assert len(stored["content_hash"]) == len(hashlib.sha256().digest())
    assert (stored["app"], stored["interaction_id"], stored["revision"], stored["is_current"]) == ("shop", "a", 1, True)
    assert (stored["question"], stored["answer"]) == (logged.question, logged.answer)
    assert stored["metadata"] == logged.metadata
    assert stored["repairs"] == list(settlement.decoded.repairs)
    assert (stored["adapter"], stored["generator_model"]) == ("native", "writer-1")
    assert stored["occurred_at"] == OCCURRED_AT
    assert stored["received_at"] == datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)
    assert (stored["source_topic"], stored["source_partition"], stored["source_offset"]) == (TOPIC, 0, 0)

    kept = rows(database_url, "SELECT * FROM passages ORDER BY position")
    assert [(row["passage_id"], row["text"], row["score"], row["metadata"]) for row in kept] == [
        (passage.id, passage.text, passage.score, passage.metadata) for passage in logged.passages
    ]

    verdict = rows(database_url, "SELECT * FROM verdicts")[0]
    assert (verdict["scorer_id"], verdict["threshold_id"], verdict["method"]) == (scorer_id, threshold.id, "two_pass")
    assert (verdict["skip_reason"], verdict["lowest_score"], verdict["attributed_at"]) == (None, 0.01, None)
    assert (verdict["n_sentences"], verdict["n_scored"], verdict["n_flagged"]) == (3, 2, 1)
    assert (verdict["context_tokens"], verdict["context_tokens_cut"]) == (120, 20)
    assert (verdict["answer_tokens"], verdict["answer_tokens_cut"]) == (30, 0)

    found = rows(database_url, "SELECT * FROM sentences ORDER BY sentence_index")
    assert [(row["score"], row["flagged"], row["skip_reason"]) for row in found] == [
        (0.75, False, None),
        (0.01, True, None),
        (None, None, "too_short"),
    ]
    assert [row["jsd_no_context"] for row in found] == [0.25, 0.25, None]
    assert "".join(logged.answer[row["start_char"] : row["end_char"]] for row in found) == logged.answer

    job = rows(database_url, "SELECT * FROM attribution_jobs")[0]
    assert (job["verdict_id"], job["state"], job["priority"], job["attempts"]) == (verdict["id"], "waiting", 0.01, 0)
    entry = rows(database_url, "SELECT * FROM ledger")[0]
    assert (entry["outcome"], entry["reason"], entry["interaction_pk"]) == ("scored", None, stored["id"])
    assert (entry["value_bytes"], entry["broker_time"]) == (2, stored["received_at"])


def test_an_answer_above_the_attribution_threshold_gets_no_job(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.5, 0.9], threshold)], [advance(0, 1)])
    assert _count(database_url, "attribution_jobs") == 0


def test_a_skipped_answer_is_stored_with_its_sentences_and_their_reason(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    done = store.settlements.settle(scorer_id, [skipped(0, "a", threshold)], [advance(0, 1)])
    assert done.counts == {(Outcome.SKIPPED, "no_passages"): 1}
    assert rows(database_url, "SELECT skip_reason, lowest_score FROM verdicts") == [
        {"skip_reason": "no_passages", "lowest_score": None}
    ]
    assert rows(database_url, "SELECT skip_reason FROM sentences") == [{"skip_reason": "no_passages"}]
    assert _count(database_url, "passages") == _count(database_url, "attribution_jobs") == 0


def test_a_dead_letter_is_only_booked(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    done = store.settlements.settle(scorer_id, [dead_letter(0)], [advance(0, 1)])
    assert done.counts == {(Outcome.DEAD_LETTERED, "not_json"): 1}
    assert rows(database_url, "SELECT outcome, reason, detail, interaction_pk FROM ledger") == [
        {"outcome": "dead_lettered", "reason": "not_json", "detail": "line 1 column 1", "interaction_pk": None}
    ]
    assert _count(database_url, "interactions") == 0


def test_a_record_of_several_exchanges_is_booked_once_with_a_row_for_each(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    rest = [scored(0, "b", [0.9], threshold), scored(0, "a", [0.9], threshold), dead_letter(0), dead_letter(0)]
    several = [replace(one, item=item) for item, one in enumerate([scored(0, "a", [0.9], threshold), *rest], start=1)]
    counts = {(Outcome.SCORED, None): 2, (Outcome.SKIPPED, "duplicate"): 1, (Outcome.DEAD_LETTERED, "not_json"): 2}
    batch = [*several, scored(1, "c", [0.9], threshold)]
    done = store.settlements.settle(scorer_id, batch, [advance(0, 2)])
    assert done.counts == counts | {(Outcome.SCORED, None): 3}
    assert store.ledger.counts() == done.counts
    assert store.ledger.records() == 2
    pks = {
        row["interaction_id"]: row["id"] for row in rows(database_url, "SELECT id, interaction_id FROM interactions")
    }
    booked = "SELECT record_offset, outcome, reason, detail, interaction_pk, results FROM ledger ORDER BY record_offset"
    assert [tuple(row.values()) for row in rows(database_url, booked)] == [
        (0, "scored", None, None, pks["a"], 5),
        (1, "scored", None, None, pks["c"], None),
    ]
    each = "SELECT record_offset, item, outcome, reason, interaction_pk FROM ledger_items ORDER BY item"
    assert [tuple(row.values()) for row in rows(database_url, each)] == [
        (0, 1, "scored", None, pks["a"]),
        (0, 2, "scored", None, pks["b"]),
        (0, 3, "skipped", "duplicate", pks["a"]),
        (0, 4, "dead_lettered", "not_json", None),
        (0, 5, "dead_lettered", "not_json", None),
    ]
    letters = rows(
        database_url, "SELECT record_offset, item, reason, detail, value_bytes FROM v_dead_letters ORDER BY item"
    )
    assert [tuple(row.values()) for row in letters] == [(0, item, "not_json", "line 1 column 1", 2) for item in (4, 5)]


def test_a_record_without_a_good_result_is_booked_as_what_its_letter_says(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [replace(skipped(0, "a", threshold), item=1), dead_letter(0, item=2), dead_letter(0, item=3)]
    store.settlements.settle(scorer_id, batch, [advance(0, 1)])
    assert rows(database_url, "SELECT outcome, reason, detail, results FROM ledger") == [
        {"outcome": "dead_lettered", "reason": "not_json", "detail": "row 2: line 1 column 1; and 1 more", "results": 3}
    ]


def test_a_record_of_several_exchanges_is_counted_once_however_often_it_is_booked(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(0, "a", [0.9], threshold), dead_letter(0, item=2)]
    store.settlements.settle(scorer_id, batch, [advance(0, 1)])
    rows(database_url, "UPDATE partition_offsets SET next_offset = 0")
    assert store.settlements.settle(scorer_id, batch, [advance(0, 1)]).counts == {}
    assert _count(database_url, "ledger_items") == 2


def test_of_one_exchange_twice_in_a_record_the_later_is_current(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    first, second = scored(0, "a", [0.9], threshold), scored(0, "a", [0.9], threshold, edition="Again. ")
    store.settlements.settle(scorer_id, [first, replace(second, item=2)], [advance(0, 1)])
    assert [tuple(row.values()) for row in rows(database_url, REVISIONS)] == [("a", 1, False), ("a", 2, True)]
    # The record once more, as at a replay: what it says stays in the order in which it says it.
    store.settlements.settle(scorer_id, [scored(1, "a", [0.9], threshold)], [advance(1, 2)])
    again = scored(2, "a", [0.9], threshold, edition="Again. ")
    store.settlements.settle(scorer_id, [replace(again, item=2)], [advance(2, 3)])
    assert [tuple(row.values()) for row in rows(database_url, REVISIONS)] == [("a", 1, False), ("a", 2, True)]


def test_a_step_moves_the_partition_and_notes_who_took_it(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 4)])
    assert store.offsets.positions(TOPIC) == {0: 4}
    row = rows(database_url, "SELECT * FROM partition_offsets")[0]
    assert (row["end_offset"], row["generation"], row["owner"]) == (9, 3, "worker-1")
    assert row["last_broker_time"] == datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)


def test_a_step_without_records_or_with_records_without_a_time_keeps_the_last_time(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    timeless = replace(dead_letter(1), record=record(1, timestamp_ms=None))
    store.settlements.settle(scorer_id, [timeless], [replace(advance(1, 2), end_offset=None)])
    store.settlements.settle(scorer_id, [], [replace(advance(2, 3), end_offset=None)])
    row = rows(database_url, "SELECT next_offset, end_offset, last_broker_time FROM partition_offsets")[0]
    assert (row["next_offset"], row["end_offset"]) == (3, 6)
    assert row["last_broker_time"] is not None


def test_a_partition_that_is_not_at_the_expected_offset_is_fenced_and_the_others_are_booked(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store, partitions=3)
    batch = [scored(5, "late", [0.9], threshold, partition=1), scored(0, "a", [0.9], threshold), dead_letter(0, 2)]
    done = store.settlements.settle(
        scorer_id, batch, [advance(5, 6, 1), advance(0, 1), advance(0, 1, 2), advance(0, 1, 7)]
    )
    assert done.fenced == ((TOPIC, 1), (TOPIC, 7))
    assert done.counts == {(Outcome.SCORED, None): 1, (Outcome.DEAD_LETTERED, "not_json"): 1}
    assert store.offsets.positions(TOPIC) == {0: 1, 1: 0, 2: 1}
    assert rows(database_url, "SELECT interaction_id FROM interactions") == [{"interaction_id": "a"}]


def test_of_two_equal_steps_at_once_one_is_fenced_and_leaves_no_trace(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    for offset in range(10):
        done = _together(
            *(
                partial(
                    store.settlements.settle,
                    scorer_id,
                    [scored(offset, f"{side}-{offset}", [0.9], threshold)],
                    [advance(offset, offset + 1)],
                )
                for side in ("left", "right")
            )
        )
        assert sorted(result.fenced for result in done) == [(), ((TOPIC, 0),)]
    assert store.offsets.positions(TOPIC) == {0: 10}
    assert (
        _count(database_url, "ledger") == _count(database_url, "interactions") == _count(database_url, "verdicts") == 10
    )


def test_the_same_records_again_are_neither_booked_nor_counted_again(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(0, "a", [0.01], threshold), dead_letter(1), skipped(2, "b", threshold)]
    store.settlements.settle(scorer_id, batch, [advance(0, 3)])
    before = {table: rows(database_url, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("ledger", "sentences")}
    rows(database_url, "UPDATE partition_offsets SET next_offset = 0")
    assert store.settlements.settle(scorer_id, batch, [advance(0, 3)]) == Settled({}, ())
    after = {table: rows(database_url, f"SELECT * FROM {table} ORDER BY 1, 2") for table in ("ledger", "sentences")}
    assert after == before
    assert store.offsets.positions(TOPIC) == {0: 3}


def test_the_same_content_at_another_offset_is_a_duplicate_of_the_first(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.01], threshold)], [advance(0, 1)])
    done = store.settlements.settle(scorer_id, [scored(1, "a", [0.01], threshold)], [advance(1, 2)])
    assert done.counts == {(Outcome.SKIPPED, "duplicate"): 1}
    first, second = rows(database_url, LEDGER)
    assert (second["outcome"], second["reason"]) == ("skipped", "duplicate")
    assert second["interaction_pk"] == first["interaction_pk"]
    assert _count(database_url, "verdicts") == _count(database_url, "attribution_jobs") == 1


def test_a_duplicate_that_was_known_before_scoring_is_booked_with_its_interaction(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store)
    first = scored(0, "a", [0.01], threshold)
    store.settlements.settle(scorer_id, [first], [advance(0, 1)])
    unscored = Settlement(record(1), Outcome.SKIPPED, "duplicate", decoded=first.decoded)
    assert store.settlements.settle(scorer_id, [unscored], [advance(1, 2)]).counts == {
        (Outcome.SKIPPED, "duplicate"): 1
    }
    booked = rows(database_url, LEDGER)
    assert booked[0]["interaction_pk"] == booked[1]["interaction_pk"]


def test_the_same_id_with_other_content_is_a_new_revision_and_current(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    store.settlements.settle(scorer_id, [scored(1, "a", [0.9], threshold, edition="new ")], [advance(1, 2)])
    assert [(row["revision"], row["is_current"]) for row in rows(database_url, REVISIONS)] == [(1, False), (2, True)]


def _current(url: str) -> list[tuple[int, bool]]:
    return [(row["revision"], row["is_current"]) for row in rows(url, REVISIONS)]


def test_content_that_comes_back_is_a_duplicate_and_current_again(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    first, second = scored(0, "a", [0.9], threshold), scored(1, "a", [0.9], threshold, edition="new ")
    store.settlements.settle(scorer_id, [first], [advance(0, 1)])
    store.settlements.settle(scorer_id, [second], [advance(1, 2)])
    done = store.settlements.settle(scorer_id, [scored(2, "a", [0.9], threshold)], [advance(2, 3)])
    assert done.counts == {(Outcome.SKIPPED, "duplicate"): 1}
    assert _current(database_url) == [(1, True), (2, False)]
    # As the worker books it, which knows before it scores that the content has its verdict.
    known = Settlement(record(3), Outcome.SKIPPED, "duplicate", decoded=second.decoded)
    store.settlements.settle(scorer_id, [known], [advance(3, 4)])
    assert _current(database_url) == [(1, False), (2, True)]


def test_what_comes_late_never_becomes_current(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    hour = timedelta(hours=1)
    newest = at(scored(0, "a", [0.9], threshold), hours=2)
    late = at(scored(1, "a", [0.01], threshold, edition="late "), hours=1)
    store.settlements.settle(scorer_id, [newest], [advance(0, 1)])
    assert store.settlements.settle(scorer_id, [late], [advance(1, 2)]).counts == {(Outcome.SCORED, None): 1}
    assert _current(database_url) == [(1, True), (2, False)]
    assert _count(database_url, "verdicts") == 2
    # Between the two times at which the first content came, and again after the second of them.
    again = at(scored(2, "a", [0.9], threshold), hours=4)
    batch = [again, at(scored(3, "a", [0.9], threshold, edition="third "), hours=3)]
    store.settlements.settle(scorer_id, batch, [advance(2, 4)])
    assert _current(database_url) == [(1, True), (2, False), (3, False)]
    store.settlements.settle(
        scorer_id, [at(scored(4, "a", [0.9], threshold, edition="fourth "), hours=3)], [advance(4, 5)]
    )
    assert _current(database_url) == [(1, True), (2, False), (3, False), (4, False)]
    assert rows(database_url, "SELECT time FROM v_interactions") == [{"time": OCCURRED_AT + 2 * hour}]


def test_of_contents_of_one_time_that_which_lies_further_back_is_current(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(n, "a", [0.9], threshold, edition=edition) for n, edition in enumerate(("", "new ", ""))]
    batch = [replace(one, record=record(n, timestamp_ms=BROKER_TIME_MS - n)) for n, one in enumerate(batch)]
    store.settlements.settle(scorer_id, batch[:2], [advance(0, 2)])
    assert _current(database_url) == [(1, False), (2, True)]
    store.settlements.settle(scorer_id, batch[2:], [advance(2, 3)])
    assert _current(database_url) == [(1, True), (2, False)]


def test_a_message_that_nobody_knows_the_time_of_is_as_new_as_its_arrival(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    for offset, edition in enumerate(("", "new ", "")):
        one = at(scored(offset, "a", [0.9], threshold, edition=edition), None)
        timeless = replace(one, record=record(offset, timestamp_ms=None))
        store.settlements.settle(scorer_id, [timeless], [advance(offset, offset + 1)])
    assert _current(database_url) == [(1, True), (2, False)]
    late = at(scored(3, "a", [0.9], threshold, edition="late "), hours=0)
    store.settlements.settle(scorer_id, [late], [advance(3, 4)])
    assert _current(database_url) == [(1, True), (2, False), (3, False)]


def test_a_dead_letter_that_is_replayed_after_newer_content_is_an_old_revision(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    letter, newer = dead_letter(0), at(scored(1, "a", [0.9], threshold), None)
    store.settlements.settle(scorer_id, [letter, newer], [advance(0, 2)])
    replay = Replay(
        count=1,
        topic=TOPIC,
        partition=0,
        offset=0,
        timestamp_ms=BROKER_TIME_MS,
        reason=RejectReason.SCORING_FAILED,
        replayed_at=datetime.now(UTC),
    )
    replayed = at(scored(2, "a", [0.9], threshold, edition="old "), None)
    lies = replace(record(2, timestamp_ms=BROKER_TIME_MS + 3_600_000), headers=replay.to_headers())
    store.settlements.settle(scorer_id, [replace(replayed, record=lies)], [advance(2, 3)])
    assert _current(database_url) == [(1, True), (2, False)]
    times = rows(database_url, "SELECT received_at FROM interactions ORDER BY revision")
    assert times == 2 * [{"received_at": datetime.fromtimestamp(BROKER_TIME_MS / 1000, UTC)}]


def test_in_a_topic_created_anew_the_same_time_at_a_smaller_offset_is_newer(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 50)])
    rows(database_url, "UPDATE partition_offsets SET next_offset = 0, incarnation = 1")
    anew = scored(0, "a", [0.9], threshold, edition="new ")
    store.settlements.settle(scorer_id, [anew], [advance(0, 1, incarnation=1)])
    assert _current(database_url) == [(1, False), (2, True)]
    rows(database_url, "UPDATE partition_offsets SET incarnation = 1")
    store.settlements.settle(scorer_id, [scored(1, "a", [0.9], threshold)], [advance(1, 2, incarnation=1)])
    assert _current(database_url) == [(1, True), (2, False)]


def test_two_workers_that_bring_contents_of_one_interaction_at_once_agree_on_the_current_one(
    store: Store, database_url: str
) -> None:
    scorer_id, threshold = prepared(store, partitions=2)
    second = open_store(database_url, application_name="gasp-test-2")
    first, other = scored(0, "a", [0.9], threshold), scored(1, "a", [0.9], threshold, edition="b ")
    store.settlements.settle(scorer_id, [first, other], [advance(0, 2)])
    for turn in range(10):
        hours = 2 * turn + 1
        offsets = (2 + turn, turn)
        found = (
            at(scored(offsets[0], "a", [0.9], threshold), hours=hours + turn % 2),
            at(
                scored(offsets[1], "a", [0.9], threshold, edition=f"{turn} ", partition=1),
                hours=hours + (turn + 1) % 2,
            ),
        )
        _together(
            partial(store.settlements.settle, scorer_id, [found[0]], [advance(offsets[0], offsets[0] + 1)]),
            partial(second.settlements.settle, scorer_id, [found[1]], [advance(offsets[1], offsets[1] + 1, 1)]),
        )
        (current,) = rows(database_url, "SELECT revision FROM interactions WHERE is_current")
        assert (current["revision"] == 1) == (turn % 2 == 1), turn
    second.close()


def test_one_batch_may_hold_the_same_id_several_times(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold, edition="zero ")], [advance(0, 1)])
    editions = ["one ", "two ", "one ", "three ", "zero "]
    batch = [scored(1 + n, "a", [0.9], threshold, edition=edition) for n, edition in enumerate(editions)]
    done = store.settlements.settle(scorer_id, batch, [advance(1, 6)])
    assert done.counts == {(Outcome.SCORED, None): 3, (Outcome.SKIPPED, "duplicate"): 2}
    stored = rows(database_url, "SELECT id, answer, revision, is_current FROM interactions ORDER BY revision")
    assert [(row["answer"].split()[0], row["revision"], row["is_current"]) for row in stored] == [
        ("zero", 1, True),
        ("one", 2, False),
        ("two", 3, False),
        ("three", 4, False),
    ]
    key = {row["answer"].split()[0]: row["id"] for row in stored}
    booked = rows(database_url, LEDGER)
    assert [row["interaction_pk"] for row in booked] == [
        key[name] for name in ("zero", "one", "two", "one", "three", "zero")
    ]


def test_the_same_id_in_two_apps_is_two_interactions(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    batch = [scored(0, "a", [0.9], threshold), scored(1, "a", [0.9], threshold, app="desk")]
    store.settlements.settle(scorer_id, batch, [advance(0, 2)])
    assert rows(database_url, "SELECT count(*) AS n FROM interactions WHERE is_current")[0]["n"] == 2


def test_another_scorer_adds_its_verdict_beside_the_first(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.01], threshold)], [advance(0, 1)])
    other_id, other_threshold = prepared(store, OTHER_IDENTITY)
    done = store.settlements.settle(other_id, [scored(1, "a", [0.9], other_threshold)], [advance(1, 2)])
    assert done.counts == {(Outcome.SCORED, None): 1}
    assert _count(database_url, "interactions") == 1
    assert rows(database_url, "SELECT scorer_id, lowest_score FROM verdicts ORDER BY id") == [
        {"scorer_id": scorer_id, "lowest_score": 0.01},
        {"scorer_id": other_id, "lowest_score": 0.9},
    ]


def test_an_answer_that_was_scored_by_leave_one_out_at_once_needs_no_job(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    plain = scored(0, "a", [0.01], threshold)
    store.settlements.settle(scorer_id, [replace(plain, grounding=attributed([0.01], [[0.3, 0.2]]))], [advance(0, 1)])
    assert _count(database_url, "attribution_jobs") == 0
    assert _count(database_url, "chunk_attributions") == 2
    row = rows(database_url, "SELECT supporting_passage, attribution FROM sentences, v_sentences")[0]
    assert row == {"supporting_passage": 0, "attribution": "supported"}


def test_only_content_with_a_verdict_of_this_scorer_is_known(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    other_id = store.scorers.register(OTHER_IDENTITY)
    store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    stored = interaction("a", answer_of(1))
    changed = interaction("a", answer_of(2))
    keys = [("shop", "a", stored.content_hash), ("shop", "a", changed.content_hash), ("desk", "a", stored.content_hash)]
    assert store.interactions.known(scorer_id, keys) == {("shop", "a", stored.content_hash)}
    assert store.interactions.known(other_id, keys) == set()
    assert store.interactions.known(scorer_id, []) == set()


def test_two_stores_that_store_the_same_ids_at_once_agree_on_the_revisions(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store, partitions=2)
    second = open_store(database_url, application_name="gasp-test-2")
    ids = [f"id-{number}" for number in range(20)]

    def settle(opened: Store, partition: int, start: int, edition: str) -> Settled:
        order = ids if partition == 0 else ids[::-1]
        batch = [
            scored(start + n, name, [0.01], threshold, edition=edition, partition=partition)
            for n, name in enumerate(order)
        ]
        return opened.settlements.settle(scorer_id, batch, [advance(start, start + 20, partition)])

    for start, editions in ((0, ("same ", "same ")), (20, ("left ", "right "))):
        done = _together(
            partial(settle, store, 0, start, editions[0]),
            partial(settle, second, 1, start, editions[1]),
        )
        assert [result.fenced for result in done] == [(), ()]
    second.close()
    revisions = rows(database_url, REVISIONS)
    assert len(revisions) == 60
    assert all(row["is_current"] == (row["revision"] == 3) for row in revisions)
    assert store.ledger.counts() == {(Outcome.SCORED, None): 60, (Outcome.SKIPPED, "duplicate"): 20}
    assert store.offsets.positions(TOPIC) == {0: 40, 1: 40}


def test_a_batch_that_the_database_refuses_leaves_nothing_behind(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    good = scored(1, "b", [0.9], threshold)
    assert good.verdict is not None
    broken = replace(good, verdict=replace(good.verdict, scores=(float("nan"),)))
    with pytest.raises(StoreRejected) as raised:
        store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold), broken], [advance(0, 2)])
    assert str(raised.value) == "refused: CheckViolation, constraint ck_verdicts_lowest_score_finite"
    assert raised.value.__cause__ is None
    assert store.offsets.positions(TOPIC) == {0: 0}
    assert all(_count(database_url, table) == 0 for table in ("interactions", "passages", "verdicts", "ledger"))


def test_text_that_postgresql_cannot_hold_is_rejected_and_not_an_accident(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    whole = scored(0, "a", [0.9], threshold)
    assert whole.decoded is not None
    for character in ("\0", "\ud800"):
        logged = whole.decoded.interaction.model_copy(update={"generator_model": character})
        broken = replace(whole, decoded=replace(whole.decoded, interaction=logged))
        with pytest.raises(StoreRejected):
            store.settlements.settle(scorer_id, [broken], [advance(0, 1)])


def test_a_batch_that_makes_no_sense_is_refused_before_the_database_is_asked(store: Store) -> None:
    scorer_id, threshold = prepared(store)
    item = scored(0, "a", [0.9], threshold)
    for settlements, advances in (
        ([item], []),
        ([item], [advance(0, 0)]),
        ([item], [advance(0, 1), advance(0, 1)]),
        ([replace(item, verdict=None)], [advance(0, 1)]),
    ):
        with pytest.raises(ValueError, match=r"advance|verdict"):
            store.settlements.settle(scorer_id, settlements, advances)


def test_a_batch_takes_the_same_few_statements_however_long_it_is(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer_id, threshold = prepared(store)
    counts: list[int] = []
    execute = Connection.execute

    def counted(connection: Connection, statement: Executable, parameters: dict[str, Any] | None = None) -> object:
        counts[-1] += 1
        return execute(connection, statement, parameters)

    monkeypatch.setattr(Connection, "execute", counted)
    for size, start in ((1, 0), (300, 1)):
        counts.append(0)
        batch = [scored(start + n, f"id-{start + n}", [0.01] * 8, threshold, passages=5) for n in range(size)]
        store.settlements.settle(scorer_id, batch, [advance(start, start + size)])
    assert counts[0] == counts[1] <= 10
    assert _count(database_url, "sentences") == 301 * 8


def test_a_conflict_is_tried_again_and_then_succeeds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The revisions are read before another worker stores the same interaction, as if both had come at once."""
    scorer_id, threshold = prepared(store, partitions=2)
    calls: list[int] = []

    def overtaken(connection: Connection, asked: int, keys: list[ContentKey]) -> dict[ContentKey, StoredRevision]:
        found = stored_revisions(connection, asked, keys)
        calls.append(len(calls))
        if len(calls) == 1:
            store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold, partition=1)], [advance(0, 1, 1)])
        return found

    monkeypatch.setattr("worker.store.answers.stored_revisions", overtaken)
    done = store.settlements.settle(scorer_id, [scored(0, "a", [0.9], threshold)], [advance(0, 1)])
    assert done.counts == {(Outcome.SKIPPED, "duplicate"): 1}
    assert len(calls) == 3


def test_thresholds_are_seeded_once_even_if_two_workers_start_at_once(store: Store, database_url: str) -> None:
    def start() -> Settled:
        identity = store.scorers.register(IDENTITY)
        store.thresholds.ensure_default(identity, 0.1, 0.5, "seed")
        return Settled()

    for _ in range(3):
        _together(start, start, start)
    assert _count(database_url, "scorers") == 1
    assert rows(database_url, "SELECT app, version, learned_from, is_active FROM thresholds") == [
        {"app": None, "version": 1, "learned_from": "seeded", "is_active": True}
    ]
    assert rows(database_url, "SELECT label FROM scorers") == [{"label": IDENTITY.label}]


def test_a_scorer_with_a_retired_default_is_not_seeded_again(store: Store, database_url: str) -> None:
    scorer_id, _ = prepared(store)
    rows(database_url, "UPDATE thresholds SET is_active = false")
    store.thresholds.ensure_default(scorer_id, 0.2, 0.6, "again")
    assert store.thresholds.in_force(scorer_id) == {}


def test_an_apps_own_threshold_stands_beside_the_default(store: Store, database_url: str) -> None:
    scorer_id, default = prepared(store)
    sql = """
    INSERT INTO thresholds (app, scorer_id, version, flag_below, attribute_below, learned_from, activated_at, is_active)
    SELECT app, %(scorer)s, version, 0.2, 0.3, 'manual', CASE WHEN active THEN now() END, active
    FROM (VALUES ('shop', 2, false), ('shop', 3, true), ('desk', 1, true)) AS v (app, version, active)
    """
    rows(database_url, sql, scorer=scorer_id)
    active = store.thresholds.in_force(scorer_id)
    assert {app: threshold.name for app, threshold in active.items()} == {
        None: "*/1",
        "shop": "shop/3",
        "desk": "desk/1",
    }
    assert active[None] == default
    assert datetime.now(UTC) - default.activated_at < timedelta(minutes=5)
    assert default.activated_at.utcoffset() == timedelta(0)
