"""The sample exchanges of the demonstration: valid, varied, and honest about which sentences are invented."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from importlib.resources import files

import orjson
import pytest

from schemas.decoding import Decoded, decode_payload
from schemas.interaction import Interaction

RECEIVED_AT = datetime(2026, 11, 30, tzinfo=UTC)
LINES = (files("worker") / "samples.jsonl").read_bytes().splitlines()


def decode(line: bytes) -> Decoded:
    reading = decode_payload(line, (), max_bytes=65536, default_app="nobody", received_at=RECEIVED_AT)
    (decoded,) = reading.results
    assert isinstance(decoded, Decoded)
    return decoded


@pytest.fixture(scope="module")
def samples() -> list[Interaction]:
    return [decode(line).interaction for line in LINES]


def invented(sample: Interaction) -> list[str]:
    found = sample.metadata["invented"]
    assert isinstance(found, list)
    return [str(sentence) for sentence in found]


def test_there_are_twenty_samples() -> None:
    assert len(LINES) == 20


@pytest.mark.parametrize("line", LINES, ids=[orjson.loads(line)["interaction_id"] for line in LINES])
def test_a_sample_is_in_the_native_form_and_needs_no_repair(line: bytes) -> None:
    decoded = decode(line)
    assert decoded.repairs == ()
    assert decoded.adapter == "native"
    names = {field.alias or name for name, field in type(decoded.interaction).model_fields.items()}
    # No answer among them cites with marks.
    assert set(orjson.loads(line)) == names - {"answer_marks"}


def test_ids_are_unique(samples: list[Interaction]) -> None:
    assert len({sample.interaction_id for sample in samples}) == len(samples)


def test_samples_come_from_many_domains_and_apps(samples: list[Interaction]) -> None:
    assert len({sample.metadata["domain"] for sample in samples}) > 5
    assert len({sample.app for sample in samples}) > 5
    assert {sample.metadata["language"] for sample in samples} == {"en", "de"}


def test_every_invented_sentence_occurs_once_in_the_answer_and_in_no_passage(samples: list[Interaction]) -> None:
    for sample in samples:
        for sentence in invented(sample):
            assert sample.answer.count(sentence) == 1, sample.interaction_id
            assert all(sentence not in passage.text for passage in sample.passages)


def test_faithful_mixed_and_mostly_invented_answers_are_among_them(samples: list[Interaction]) -> None:
    counts = Counter(len(invented(sample)) for sample in samples)
    assert counts[0] >= 6
    assert counts[1] + counts[2] >= 9
    assert counts[3] >= 2


def test_each_has_three_to_five_passages_and_is_short_enough_for_a_quick_demonstration(
    samples: list[Interaction],
) -> None:
    for sample in samples:
        assert 3 <= len(sample.passages) <= 5, sample.interaction_id
        context = sum(len(passage.text) for passage in sample.passages)
        assert context + len(sample.question) + len(sample.answer) < 2000, sample.interaction_id


def test_the_awkward_shapes_are_among_them(samples: list[Interaction]) -> None:
    by_id = {sample.interaction_id: sample for sample in samples}
    texts = [passage.text for passage in by_id["support-0002"].passages]
    assert len(set(texts)) < len(texts)
    assert by_id["museum-0002"].answer.startswith("I could not find")
    assert all(mark in by_id["manual-0002"].answer for mark in ("# ", "\n- ", "\n|---|", "```"))
