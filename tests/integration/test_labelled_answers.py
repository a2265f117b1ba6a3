"""Labelled answers with their texts, as a detector is learned from them."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from structlog import reset_defaults
from typer.testing import CliRunner

from gasp_core.errors import InputError
from gasp_core.evaluation.data import LabelSpan
from tests.integration.label_examples import answered, asked, label
from tests.integration.store_examples import answer_of, rows
from worker.cli import app
from worker.store.store import Store


@pytest.fixture
def tasks(store: Store, database_url: str) -> tuple[UUID, UUID]:
    answered(store, "id-0", "id-1")
    return asked(database_url, "id-0"), asked(database_url, "id-1")


def span(index: int) -> tuple[int, int]:
    return len(answer_of(index)), len(answer_of(index + 1))


def test_labelled_sentences_come_with_the_texts_weighted_by_how_unlikely_they_were_to_be_asked(
    store: Store, tasks: tuple[UUID, UUID]
) -> None:
    first, second = tasks
    store.labels.add([label(first, 0, "unsupported"), label(first, 1, "supported"), label(second, 1, "partly")], "file")
    found = store.labelled_answers.texts()
    answers = {answer.source: answer for answer in found.answers}
    assert set(answers) == {"shop/id-0", "shop/id-1"}
    exchange = answers["shop/id-0"].exchange
    assert (exchange.question, exchange.answer) == ("When does the train leave?", answer_of(4))
    assert [passage.text for passage in exchange.passages] == ["Passage 0 on trains.", "Passage 1 on trains."]
    # The flagged sentence was asked about for sure, the other one with a probability of a quarter.
    assert sorted(answers["shop/id-0"].sentences or (), key=lambda one: one.start) == [
        LabelSpan(*span(0), unsupported=True, weight=1.0),
        LabelSpan(*span(1), unsupported=False, weight=4.0),
    ]
    assert answers["shop/id-1"].sentences == (LabelSpan(*span(1), unsupported=True, weight=4.0),)
    assert (found.sentences, found.without_texts, found.without_probability) == (3, 0, 0)
    assert store.labelled_answers.texts("another").answers == ()
    assert store.labelled_answers.texts(limit=2).sentences == 2


def test_what_retention_has_removed_is_left_out_and_counted(
    store: Store, database_url: str, tasks: tuple[UUID, UUID]
) -> None:
    store.labels.add([label(task, index, "supported") for task in tasks for index in (0, 1)], "file")
    rows(database_url, "DELETE FROM interactions WHERE interaction_id = 'id-0'")
    found = store.labelled_answers.texts()
    assert [answer.source for answer in found.answers] == ["shop/id-1"]
    assert (found.sentences, found.without_texts) == (2, 2)
    rows(database_url, "DELETE FROM passages")
    found = store.labelled_answers.texts()
    assert (found.answers, found.without_texts) == ((), 4)


def test_what_was_labelled_without_being_asked_has_no_weight_and_is_counted(
    store: Store, database_url: str, tasks: tuple[UUID, UUID]
) -> None:
    # The fourth sentence has a score, and nobody was asked about it.
    store.labels.add([label("id-0", 3, "unsupported"), label(tasks[0], 0, "supported")], "file")
    found = store.labelled_answers.texts()
    assert (found.sentences, found.without_probability) == (1, 1)
    rows(database_url, "DELETE FROM interactions")


def test_labels_are_spans_of_what_was_scored_and_not_of_the_answer_with_its_marks(
    store: Store, database_url: str, tasks: tuple[UUID, UUID]
) -> None:
    store.labels.add([label(tasks[0], 1, "unsupported")], "file")
    start, end = span(1)
    # A mark of three characters in the first sentence, which the stored spans count.
    rows(
        database_url,
        "UPDATE interactions SET answer = 'abc' || answer, answer_marks = '[{\"start\": 0, \"end\": 3}]'"
        " WHERE interaction_id = 'id-0'",
    )
    rows(database_url, "UPDATE review_sentences SET start_char = start_char + 3, end_char = end_char + 3")
    (answer,) = store.labelled_answers.texts().answers
    assert answer.exchange.answer == answer_of(4)
    assert answer.sentences == (LabelSpan(start, end, unsupported=True, weight=4.0),)


def test_without_labels_and_files_there_is_nothing_to_learn_from(
    store: Store, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_DATABASE_URL", database_url)
    monkeypatch.setenv("GASP_KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    output = str(tmp_path / "own.safetensors")
    with pytest.raises(InputError, match=r"^labels: there is nothing to learn from"):
        CliRunner().invoke(app, ["fit-detector", "--out", output], catch_exceptions=False)
    answered(store, "id-0")
    store.labels.add([label(asked(database_url, "id-0"), 0, "supported")], "file")
    rows(database_url, "DELETE FROM interactions")
    done = CliRunner().invoke(app, ["fit-detector", "--out", output])
    assert "0 labelled sentences of 0 answers in the database; 1 left out because retention" in done.stdout
    assert isinstance(done.exception, InputError)
    reset_defaults()
