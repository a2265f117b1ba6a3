"""Labels in PostgreSQL: what becomes of each, which hold, and what they do to their task."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from schemas.review_label import Label, ReviewLabel
from tests.integration.label_examples import (
    ASKED,
    NOON,
    answered,
    asked,
    consensus,
    held,
    label,
    task_state,
    withdrawal,
)
from tests.integration.store_examples import TOPIC, advance, age, prepared, record, rows, scored, selected
from worker.jobs.retention import Remover
from worker.rules.agreement import agreements
from worker.rules.label_settlement import LabelSettlement
from worker.rules.settlement import Outcome
from worker.store.labels import LabelOutcome
from worker.store.retention_periods import Period
from worker.store.store import Store

STORED, REPEATED, CORRECTED, WITHDRAWN, RESTORED, EARLY, SUPERSEDED = (
    LabelOutcome.STORED,
    LabelOutcome.REPEATED,
    LabelOutcome.CORRECTED,
    LabelOutcome.WITHDRAWN,
    LabelOutcome.RESTORED,
    LabelOutcome.EARLY,
    LabelOutcome.SUPERSEDED,
)


@pytest.fixture
def task(store: Store, database_url: str) -> UUID:
    """One answer that two reviewers are asked about."""
    answered(store, "id-0")
    return asked(database_url, "id-0", reviewers=2)


def said(store: Store, *labels: Any) -> list[LabelOutcome]:
    return store.labels.add(labels, "file")


def rounds(url: str) -> list[tuple[str, int]]:
    return [(row["channel"], row["round"]) for row in rows(url, "SELECT channel, round FROM outbox ORDER BY 2, 1")]


# --- which answer a label is about ---

CONSENSUS = """
SELECT unsupported, score, selection_probability AS probability, revision FROM v_review_consensus
ORDER BY time, interaction_pk NULLS FIRST, sentence_index"""
UNKNOWN = UUID(int=7)


def place(interaction_id: str = "id-0") -> dict[str, Any]:
    return {"app": "shop", "interaction_id": interaction_id, "revision": 1}


def test_a_label_of_a_task_that_nobody_knows_finds_its_answer_by_app_and_id(store: Store, database_url: str) -> None:
    answered(store, "id-0")
    assert said(store, label(UNKNOWN, 0, "unsupported", **place())) == [STORED]
    assert said(store, label(UNKNOWN, 2, "unsupported", **place())) == [LabelOutcome.UNKNOWN_SENTENCE]
    (found,) = rows(database_url, "SELECT task_id, place, interaction_id FROM v_review_labels")
    assert found == {"task_id": None, "place": "known", "interaction_id": "id-0"}
    assert rows(database_url, CONSENSUS) == [{"unsupported": True, "score": 0.01, "probability": None, "revision": 1}]


def test_a_label_of_a_task_that_nobody_knows_counts_for_the_task_that_its_answer_has(
    store: Store, database_url: str, task: UUID
) -> None:
    first = [label(UNKNOWN, index, "supported", **place()) for index in ASKED]
    assert said(store, *first) == [STORED, STORED]
    queue = "SELECT sentences_labelled FROM v_review_queue"
    assert rows(database_url, queue) == [{"sentences_labelled": 2}]
    said(store, *(label(task, index, "supported", "bob") for index in ASKED))
    assert task_state(database_url, task) == ("labelled", 1)
    assert [row["probability"] for row in rows(database_url, CONSENSUS)] == [1, 0.25]


def test_a_label_that_names_a_known_task_is_about_it_whatever_else_it_says(store: Store, database_url: str) -> None:
    answered(store, "id-0", "id-1")
    task = asked(database_url, "id-0")
    said(store, label(task, 0, "supported", **place("id-1")))
    assert held(database_url) == [("id-0", 0, "ada", "supported")]


@pytest.fixture
def used_again(store: Store, database_url: str) -> int:
    """An answer that was asked about, labelled by its id and removed; gives the scorer whose next answer has its id."""
    scorer_id, threshold = prepared(store)
    old = selected(scored(0, "id-0", [0.01], threshold), probability=0.25)
    store.settlements.settle(scorer_id, [old], [advance(0, 1)])
    assert said(store, label("id-0", 0, "unsupported", "ada")) == [STORED]
    age(database_url, "id-0", 40)
    store.retention_periods.set(Period("shop", 30))
    assert Remover.of(store).remove(threading.Event()).removed.interactions == 1
    assert [tuple(row.values()) for row in rows(database_url, CONSENSUS)] == [(True, 0.01, 0.25, 1)]
    return scorer_id


@pytest.mark.parametrize("edition", ["", "New. "])
def test_an_id_that_is_used_again_does_not_get_the_task_of_the_answer_that_was_removed(
    store: Store, database_url: str, used_again: int, edition: str
) -> None:
    threshold = store.thresholds.in_force(used_again)[None]
    new = selected(scored(1, "id-0", [0.05], threshold, edition=edition), probability=0.5)
    store.settlements.settle(used_again, [new], [advance(1, 2)])
    # What was said of the old answer stays with it; what is said now is about the new one.
    old_one = (True, 0.01, 0.25, 1)
    assert [tuple(row.values()) for row in rows(database_url, CONSENSUS)] == [old_one]
    assert said(store, label("id-0", 0, "supported", "bob", minute=1)) == [STORED]
    assert [tuple(row.values()) for row in rows(database_url, CONSENSUS)] == [old_one, (False, 0.05, 0.5, 1)]
    tasks = rows(database_url, "SELECT state, probability FROM review_tasks ORDER BY id")
    assert [tuple(row.values()) for row in tasks] == [("labelled", 0.25), ("labelled", 0.5)]
    enter(database_url, app="shop", interaction_id="id-0", sentence_index=0, label="supported", reviewer="cy")
    found = rows(database_url, "SELECT reviewer, selection_probability FROM v_review_labels ORDER BY 1")
    assert [tuple(row.values()) for row in found] == [("ada", 0.25), ("bob", 0.5), ("cy", 0.5)]


def test_an_answer_that_nobody_is_asked_about_does_not_get_the_old_task_of_its_id(
    store: Store, database_url: str, used_again: int
) -> None:
    threshold = store.thresholds.in_force(used_again)[None]
    store.settlements.settle(used_again, [scored(1, "id-0", [0.05, 0.9], threshold)], [advance(1, 2)])
    # The answer before had no second sentence.
    said_now = [label("id-0", index, "supported", "bob", minute=index) for index in (0, 1)]
    assert said(store, *said_now) == [STORED, STORED]
    assert [tuple(row.values()) for row in rows(database_url, CONSENSUS)] == [
        (True, 0.01, 0.25, 1),
        (False, 0.05, None, 1),
        (False, 0.9, None, 1),
    ]


# --- outcomes ---


def test_a_label_that_arrives_twice_is_stored_once_also_in_one_batch(
    store: Store, database_url: str, task: UUID
) -> None:
    first = label(task, 0, "supported")
    assert said(store, first, first) == [STORED, REPEATED]
    assert said(store, first) == [REPEATED]
    assert rows(database_url, "SELECT count(*) AS n FROM review_labels") == [{"n": 1}]


def test_a_label_without_a_time_is_a_repeat_too(store: Store, task: UUID) -> None:
    first = label(task, 0, "supported", labelled_at=None)
    assert said(store, first, first) == [STORED, REPEATED]


def test_a_correction_holds_by_its_time_and_not_by_its_arrival(store: Store, database_url: str, task: UUID) -> None:
    said(store, label(task, 0, "supported", minute=1))
    assert said(store, label(task, 0, "unsupported", minute=3, detail="conflict")) == [CORRECTED]
    assert said(store, label(task, 0, "partly", minute=2)) == [CORRECTED]
    assert held(database_url) == [("id-0", 0, "ada", "unsupported")]


def test_a_correction_may_move_a_judgement_to_another_sentence(store: Store, database_url: str, task: UUID) -> None:
    said(store, label(task, 0, "supported", external_id="7", minute=1))
    said(store, label(task, 1, "supported", external_id="7", minute=2))
    assert held(database_url) == [("id-0", 1, "ada", "supported")]


def test_a_withdrawal_takes_back_one_judgement_or_all_of_an_annotation(
    store: Store, database_url: str, task: UUID
) -> None:
    said(store, *(label(task, index, "supported", external_id=f"17:{index}") for index in ASKED))
    said(store, label(task, 0, "supported", "bob", external_id="170:0"))
    assert said(store, withdrawal("17:1", minute=1)) == [WITHDRAWN]
    assert said(store, withdrawal("17", minute=2)) == [WITHDRAWN]
    assert held(database_url) == [("id-0", 0, "bob", "supported")]
    assert said(store, withdrawal("17", minute=2), withdrawal("18")) == 2 * [LabelOutcome.NOTHING_TO_WITHDRAW]


def test_an_update_takes_back_what_it_does_not_say_again(store: Store, database_url: str, task: UUID) -> None:
    said(store, *(label(task, index, "supported", external_id=f"17:{index}") for index in ASKED))
    update = (withdrawal("17", minute=1), label(task, 1, "partly", external_id="17:1", minute=1))
    assert said(store, *update) == [WITHDRAWN, CORRECTED]
    assert held(database_url) == [("id-0", 1, "ada", "partly")]
    assert said(store, *update)[1] is REPEATED
    assert held(database_url) == [("id-0", 1, "ada", "partly")]


def test_what_is_given_and_taken_back_in_one_batch_does_not_hold(store: Store, database_url: str, task: UUID) -> None:
    given = label(task, 0, "supported", external_id="17:0")
    assert said(store, given, withdrawal("17", minute=1)) == [STORED, WITHDRAWN]
    assert held(database_url) == []


def untimed(one: ReviewLabel) -> ReviewLabel:
    """The same, without a time of its own: that of its arrival counts."""
    return one.model_copy(update={"labelled_at": None})


@pytest.mark.parametrize("times", ["one", "the label's", "none"])
def test_a_label_that_is_said_again_after_its_withdrawal_holds_again(
    store: Store, database_url: str, task: UUID, times: str
) -> None:
    one, back = label(task, 0, "supported", external_id="17:0"), withdrawal("17")
    one, back = untimed(one) if times == "none" else one, back if times == "one" else untimed(back)
    assert said(store, one) == [STORED]
    assert said(store, back) == [WITHDRAWN]
    assert held(database_url) == []
    for again in (RESTORED, REPEATED):
        assert said(store, one) == [again]
        assert held(database_url) == [("id-0", 0, "ada", "supported")]


def test_a_withdrawal_without_a_time_can_be_repeated_as_often_as_its_label(
    store: Store, database_url: str, task: UUID
) -> None:
    one, back = (untimed(each) for each in (label(task, 0, "supported", external_id="17:0"), withdrawal("17")))
    for outcome in (STORED, RESTORED, RESTORED):
        assert said(store, one) == [outcome]
        assert said(store, back) == [WITHDRAWN]
        assert held(database_url) == []


def test_a_label_whose_withdrawal_says_that_it_is_later_stays_withdrawn(
    store: Store, database_url: str, task: UUID
) -> None:
    one = label(task, 0, "supported", external_id="17:0")
    assert said(store, one, withdrawal("17", minute=1), one) == [STORED, WITHDRAWN, REPEATED]
    assert held(database_url) == []
    assert said(store, label(task, 0, "supported", external_id="17:0", minute=2)) == [CORRECTED]
    assert held(database_url) == [("id-0", 0, "ada", "supported")]


def test_labels_and_withdrawals_that_are_repeated_in_their_order_end_as_before(
    store: Store, database_url: str, task: UUID
) -> None:
    one, other = (untimed(label(task, index, "supported", external_id=f"17:{index}")) for index in ASKED)
    batch = (one, untimed(withdrawal("17:0")), other)
    for _ in range(3):
        said(store, *batch)
        assert held(database_url) == [("id-0", 1, "ada", "supported")]


def test_a_label_before_its_answer_is_kept_and_counts_once_the_task_is_there(store: Store, database_url: str) -> None:
    early = [label("id-0", index, "unsupported") for index in ASKED]
    assert said(store, *early) == [EARLY, EARLY]
    assert consensus(database_url) == {}
    answered(store, "id-0")
    task = asked(database_url, "id-0")
    assert consensus(database_url) == {0: True, 1: True}
    assert task_state(database_url, task) == ("open", 1)
    assert store.labels.refresh_early() == 1
    assert task_state(database_url, task) == ("labelled", 1)
    assert store.labels.refresh_early() == 0


def test_a_label_of_a_superseded_revision_is_kept_and_counts(store: Store, database_url: str, task: UUID) -> None:
    scorer_id, threshold = prepared(store, partitions=0)
    store.settlements.settle(scorer_id, [scored(1, "id-0", [0.3], threshold, edition="New. ")], [advance(1, 2)])
    assert said(store, label(task, 0, "unsupported")) == [SUPERSEDED]
    assert rows(database_url, "SELECT place, revision FROM v_review_labels") == [{"place": "superseded", "revision": 1}]
    assert consensus(database_url) == {0: True}


def test_a_label_of_a_deleted_answer_is_kept_and_counts_if_it_was_asked(
    store: Store, database_url: str, task: UUID
) -> None:
    said(store, label(task, 0, "unsupported"))
    rows(database_url, "UPDATE interactions SET stored_at = stored_at")
    rows(database_url, "DELETE FROM interactions")
    assert said(store, label(task, 1, "supported"), label(task, 3, "supported")) == [
        STORED,
        LabelOutcome.UNKNOWN_SENTENCE,
    ]
    assert consensus(database_url) == {0: True, 1: False}


@pytest.mark.parametrize("index", [2, 4])
def test_a_label_of_a_sentence_that_is_not_there_or_has_no_score_is_refused(
    store: Store, database_url: str, task: UUID, index: int
) -> None:
    wrong, right = label(task, index, "supported"), label(task, 0, "supported")
    assert store.labels.unknown_sentences([wrong, right]) == {0}
    assert said(store, wrong, right) == [LabelOutcome.UNKNOWN_SENTENCE, STORED]
    assert [row[1] for row in held(database_url)] == [0]


def test_a_task_that_nobody_knows_is_early(store: Store) -> None:
    assert said(store, label(uuid4(), 0, "supported")) == [EARLY]


# --- tasks ---


def test_a_task_is_labelled_when_enough_reviewers_agree_on_every_asked_sentence(
    store: Store, database_url: str, task: UUID
) -> None:
    said(store, *(label(task, index, "supported") for index in ASKED), label(task, 0, "not_a_claim", "bob"))
    assert task_state(database_url, task) == ("open", 1)
    said(store, label(task, 1, "cant_tell", "bob"))
    assert task_state(database_url, task) == ("labelled", 1)
    assert consensus(database_url) == {0: False, 1: False}


def test_a_task_is_open_again_when_a_label_is_taken_back(store: Store, database_url: str, task: UUID) -> None:
    said(store, *(label(task, index, "supported", who) for index in ASKED for who in ("ada", "bob")))
    assert task_state(database_url, task) == ("labelled", 1)
    said(store, withdrawal(f"bob:{task}:1", minute=1))
    assert task_state(database_url, task) == ("open", 1)
    assert rows(database_url, "SELECT closed_at FROM review_tasks") == [{"closed_at": None}]


def test_labels_that_contradict_send_the_task_out_again_and_the_majority_then_holds(
    store: Store, database_url: str, task: UUID
) -> None:
    said(store, *(label(task, 1, "supported", who) for who in ("ada", "bob")), label(task, 0, "supported"))
    said(store, label(task, 0, "partly", "bob"))
    assert task_state(database_url, task) == ("disputed", 2)
    assert rounds(database_url) == [("kafka", 1), ("webhook", 1), ("kafka", 2), ("webhook", 2)]
    assert consensus(database_url) == {1: False}
    said(store, label(task, 0, "unsupported", "cyd"))
    assert task_state(database_url, task) == ("labelled", 2)
    assert consensus(database_url) == {0: True, 1: False}


def test_a_tie_after_three_rounds_closes_the_task_and_counts_as_cannot_tell(
    store: Store, database_url: str, task: UUID
) -> None:
    said(store, *(label(task, 1, "supported", who) for who in ("ada", "bob")))
    words = {"ada": "supported", "bob": "unsupported", "cyd": "cant_tell"}
    said(store, *(label(task, 0, word, who) for who, word in words.items() if who != "cyd"))
    said(store, label(task, 0, "cant_tell", "cyd"))
    assert task_state(database_url, task) == ("disputed", 3)
    said(store, label(task, 0, "cant_tell", "dan"))
    assert task_state(database_url, task) == ("labelled", 3)
    assert consensus(database_url) == {1: False}
    said(store, label(task, 0, "supported", "eve"))
    assert task_state(database_url, task) == ("labelled", 3)
    assert len(rounds(database_url)) == 6
    assert consensus(database_url) == {0: False, 1: False}


def test_a_dispute_ends_when_a_reviewer_gives_in(store: Store, database_url: str, task: UUID) -> None:
    said(store, *(label(task, index, "supported", who) for index in ASKED for who in ("ada", "bob")))
    said(store, label(task, 0, "unsupported", minute=1))
    assert task_state(database_url, task) == ("disputed", 2)
    said(store, label(task, 0, "supported", minute=2))
    assert task_state(database_url, task) == ("labelled", 2)


def test_a_later_label_of_one_more_reviewer_disputes_a_task_that_was_closed(store: Store, database_url: str) -> None:
    answered(store, "id-0")
    task = asked(database_url, "id-0")
    said(store, *(label(task, index, "supported") for index in ASKED))
    said(store, label(task, 0, "unsupported", "bob"))
    assert task_state(database_url, task) == ("disputed", 2)


def test_labels_by_interaction_reach_its_task(store: Store, database_url: str, task: UUID) -> None:
    said(store, *(label("id-0", index, "supported", who) for index in ASKED for who in ("ada", "bob")))
    assert task_state(database_url, task) == ("labelled", 1)


def test_reviewers_at_the_same_moment_are_all_seen(store: Store, database_url: str) -> None:
    names = [f"id-{number}" for number in range(6)]
    answered(store, *names)
    tasks = [asked(database_url, name, reviewers=4) for name in names]
    batches = [
        [label(task, index, "supported", who) for task in order for index in ASKED]
        for who, order in zip("abcd", (tasks, tasks[::-1], tasks, tasks[::-1]), strict=True)
    ]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda batch: store.labels.add(batch, "file"), batches))
    assert {one for batch in outcomes for one in batch} == {STORED}
    assert {task_state(database_url, task) for task in tasks} == {("labelled", 1)}


def test_the_same_labels_from_two_sides_at_once_are_stored_once(store: Store, database_url: str, task: UUID) -> None:
    labels = [label(task, index, "supported", f"r{number}") for number in range(50) for index in ASKED]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda batch: store.labels.add(batch, "file"), (labels, labels[::-1])))
    assert rows(database_url, "SELECT count(*) AS n FROM review_labels") == [{"n": 100}]


# --- records of the topic ---


def test_labels_of_a_partition_that_is_another_owners_are_not_stored(
    store: Store, database_url: str, task: UUID
) -> None:
    batch = [LabelSettlement(record(1), Outcome.LABELLED, labels=(label(task, 0, "supported"),))]
    assert store.label_settlements.settle(batch, [advance(1, 2, owner="another")]).fenced == ((TOPIC, 0),)
    assert held(database_url) == []
    settled = store.label_settlements.settle(batch, [advance(1, 2)])
    assert (settled.counts, settled.fenced) == ({(Outcome.LABELLED, None): 1}, ())
    assert held(database_url) == [("id-0", 0, "ada", "supported")]


def test_a_record_of_which_nothing_is_new_is_skipped_with_the_reason(store: Store, task: UUID) -> None:
    given = label(task, 0, "supported")
    said(store, given)
    batch = [
        LabelSettlement(record(1), Outcome.LABELLED, labels=(given,)),
        LabelSettlement(record(2), Outcome.LABELLED, labels=(withdrawal("9"),)),
        LabelSettlement(record(3), Outcome.LABELLED, labels=(withdrawal("9"), label(task, 1, "partly"))),
    ]
    assert store.label_settlements.settle(batch, [advance(1, 4)]).counts == {
        (Outcome.SKIPPED, "repeated"): 1,
        (Outcome.SKIPPED, "nothing_to_withdraw"): 1,
        (Outcome.LABELLED, None): 1,
    }


# --- what the calibration reads ---


def test_the_consensus_has_the_selection_of_what_was_asked_and_the_score_of_what_was_not(
    store: Store, database_url: str, task: UUID
) -> None:
    said(store, label(task, 0, "unsupported"), label(task, 1, "supported"), label(task, 3, "partly"))
    said(store, label(task, 0, "cant_tell", "bob"))
    found = rows(database_url, "SELECT * FROM v_review_consensus ORDER BY sentence_index")
    assert [(row["score"], row["selection_probability"], row["unsupported"], row["reviewers"]) for row in found] == [
        (0.01, 1.0, True, 2),
        (0.9, 0.25, False, 1),
        (0.05, None, True, 1),
    ]
    assert {row["scorer_id"] for row in found} == {1}
    assert {row["time"] for row in found} == {NOON}
    spans = rows(database_url, "SELECT start_char, end_char FROM sentences WHERE gap IS NOT NULL ORDER BY 1")
    assert [(row["start_char"], row["end_char"]) for row in found] == [tuple(span.values()) for span in spans]
    assert len({row["task_pk"] for row in found}) == len({row["interaction_pk"] for row in found}) == 1


def test_the_view_of_agreement_says_what_the_module_says(store: Store, database_url: str) -> None:
    answered(store, "id-0", "id-1", "id-2")
    words: dict[str, list[str | None]] = {
        "ada": ["supported", "unsupported", "supported", "partly", "supported", "unsupported"],
        "bob": ["supported", "partly", "unsupported", "unsupported", "cant_tell", "unsupported"],
        "cyd": ["not_a_claim", "unsupported", "supported", "supported", "supported", None],
    }
    places = [(f"id-{number}", index) for number in range(3) for index in ASKED]
    said(
        store,
        *(
            label(name, index, word, who)
            for who, given in words.items()
            for (name, index), word in zip(places, given, strict=True)
            if word
        ),
    )
    seen = rows(database_url, "SELECT * FROM v_reviewer_agreement")
    found = {
        (row["app"], (row["reviewer_a"], row["reviewer_b"]) if row["reviewer_a"] else None): (
            row["sentences"],
            row["agreed"],
            round(row["alpha"], 9),
        )
        for row in seen
    }
    made = agreements(store.votes.last())
    assert len(made) == 4
    assert {(one.app, one.pair): (one.sentences, one.agreed, round(one.alpha or 9, 9)) for one in made} == found
    assert {vote.label for vote in store.votes.last("shop")} == set(Label)
    assert store.votes.last("another") == []


# --- plain SQL ---

_ENTER = "INSERT INTO review_label_entry ({}) VALUES ({})"


def enter(url: str, **values: object) -> None:
    names = ", ".join(values)
    rows(url, _ENTER.format(names, ", ".join(f"%({name})s" for name in values)), **values)


def test_a_label_can_be_entered_by_plain_sql_and_settles_its_task(store: Store, database_url: str) -> None:
    answered(store, "id-0")
    task = asked(database_url, "id-0")
    enter(database_url, task_id=task, sentence_index=0, label="Unsupported: Baseless", note="nowhere")
    enter(database_url, app="shop", interaction_id="id-0", sentence_index=1, label="not a claim", reviewer="ada")
    assert task_state(database_url, task) == ("labelled", 1)
    stored = rows(
        database_url, "SELECT reviewer, label, detail, note, source, entered_by FROM review_labels ORDER BY id"
    )
    assert [tuple(row.values()) for row in stored] == [
        ("postgres", "unsupported", "baseless", "nowhere", "sql", "postgres"),
        ("ada", "not_a_claim", None, None, "sql", "postgres"),
    ]


def test_by_plain_sql_the_last_entry_of_a_reviewer_holds_and_can_be_taken_back(store: Store, database_url: str) -> None:
    answered(store, "id-0")
    task = asked(database_url, "id-0")
    for word in ("supported", "partly", "conflict"):
        enter(database_url, task_id=task, sentence_index=0, label=word)
    assert held(database_url) == [("id-0", 0, "postgres", "unsupported")]
    enter(database_url, task_id=task, sentence_index=0, action="withdraw")
    assert held(database_url) == []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"label": "true"}, "label must be supported"),
        ({"label": None}, "label must be supported"),
        ({"label": "partly", "detail": "conflict"}, "goes with unsupported only"),
        ({"label": "unsupported:maybe"}, "detail must be baseless or conflict"),
        ({"sentence_index": 2}, "no sentence of this index"),
        ({"sentence_index": None}, "sentence_index must be"),
        ({"task_id": None}, "either task_id, or app"),
        ({"labelled_at": "2035-01-01Z"}, "between 2015 and tomorrow"),
        ({"labelled_at": datetime.now(UTC) + timedelta(hours=1)}, "in the future"),
        ({"action": "delete"}, "action must be label or withdraw"),
        ({"action": "withdraw"}, "what is withdrawn has no label"),
    ],
)
def test_plain_sql_is_refused_with_the_rule(
    database_url: str, task: UUID, wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        enter(database_url, **{"task_id": task, "sentence_index": 0, "label": "supported", **wrong})
    assert held(database_url) == []
