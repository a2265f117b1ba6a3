from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.dead_letter import DeadLetter, original_headers
from schemas.errors import NotADeadLetter
from schemas.interaction import MAX_APP_CHARS, MAX_ID_CHARS, MAX_PASSAGES, Interaction, Passage, content_hash
from schemas.reject_reason import RejectReason

OK = {"interaction_id": "i1", "app": "bot", "answer": "Yes."}
# The first hours of a calendar that is ahead of UTC, and the last of one that is behind.
OUTSIDE_UTC = [
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime.max.replace(tzinfo=timezone(timedelta(hours=-14))),
]
DEAD_LETTER = DeadLetter(
    reason=RejectReason.TOO_LARGE,
    topic="interactions",
    partition=3,
    offset=42,
    size_bytes=9,
    value_attached=False,
    rejected_at=datetime(2025, 1, 1, tzinfo=UTC),
)


def rule_broken_by(**changes: object) -> str:
    with pytest.raises(ValidationError) as raised:
        Interaction.model_validate({**OK, **changes})
    return raised.value.errors()[0]["type"]


def test_only_id_app_and_answer_are_needed() -> None:
    interaction = Interaction.model_validate(OK)
    assert interaction.schema_name == "gasp.interaction.v1"
    assert (interaction.question, interaction.passages, interaction.occurred_at, interaction.metadata) == (
        "",
        (),
        None,
        {},
    )


def test_the_schema_name_is_optional_but_must_be_ours() -> None:
    assert Interaction.model_validate({**OK, "schema": "gasp.interaction.v1"}) == Interaction.model_validate(OK)
    assert rule_broken_by(schema="gasp.interaction.v2") == "literal_error"


@pytest.mark.parametrize("name", ["generator_model", "generator", "model"])
def test_the_generator_may_go_by_three_names(name: str) -> None:
    assert Interaction.model_validate({**OK, name: "m-7b"}).generator_model == "m-7b"


def test_a_time_is_kept_in_utc() -> None:
    logged = datetime(2025, 6, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    occurred_at = Interaction.model_validate({**OK, "occurred_at": logged}).occurred_at
    assert occurred_at == logged
    assert occurred_at.tzinfo is UTC
    assert rule_broken_by(occurred_at=logged.replace(tzinfo=None)) == "timezone_aware"


@pytest.mark.parametrize("moment", OUTSIDE_UTC)
def test_a_time_that_utc_does_not_reach_breaks_a_rule(moment: datetime) -> None:
    assert rule_broken_by(occurred_at=moment) == "value_error"


def test_bounds_are_enforced() -> None:
    assert Interaction.model_validate({**OK, "interaction_id": "x" * MAX_ID_CHARS})
    assert rule_broken_by(interaction_id="x" * (MAX_ID_CHARS + 1)) == "string_too_long"
    assert rule_broken_by(app="x" * (MAX_APP_CHARS + 1)) == "string_too_long"
    assert rule_broken_by(interaction_id="") == "string_too_short"
    assert rule_broken_by(interaction_id=" \n") == "string_pattern_mismatch"
    assert rule_broken_by(passages=[{"id": "a", "text": ""}] * (MAX_PASSAGES + 1)) == "too_long"


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(score: float) -> None:
    assert rule_broken_by(passages=[{"id": "a", "text": "", "score": score}]) == "finite_number"
    assert rule_broken_by(metadata={"a": [score]}) == "finite_number"


@pytest.mark.parametrize("text", ["a\x00b", "a\ud83d", "\udc00"])
def test_text_that_postgres_cannot_store_is_refused_everywhere(text: str) -> None:
    for field in ("interaction_id", "app", "question", "answer", "generator_model"):
        assert rule_broken_by(**{field: text}) in {"unstorable_text", "string_unicode"}
    assert rule_broken_by(passages=[{"id": "a", "text": text}]) == "unstorable_text"
    assert rule_broken_by(metadata={"a": [{"b": text}]}) == "unstorable_text"
    assert rule_broken_by(metadata={text: 1}) == "unstorable_text"


@pytest.mark.parametrize(
    "spans", [[(0, 0)], [(0, 9)], [(2, 1)], [(1, 3), (2, 4)], [(2, 3), (0, 1)], [(-1, 1)], [(0, 1), (1, 99)]]
)
def test_marks_lie_in_the_answer_in_order_none_over_another(spans: list[tuple[int, int]]) -> None:
    marks = [{"start": start, "end": end} for start, end in spans]
    assert rule_broken_by(answer="Yes [1].", answer_marks=marks) in {
        "not_in_order",
        "greater_than",
        "greater_than_equal",
    }


def test_the_same_words_with_other_marks_are_other_content() -> None:
    plain = Interaction.model_validate({**OK, "answer": "Yes [1][2]."})
    marks = [[{"start": 4, "end": 7}], [{"start": 4, "end": 7}, {"start": 7, "end": 10}], [{"start": 4, "end": 10}]]
    marked = [Interaction.model_validate({**OK, "answer": "Yes [1][2].", "answer_marks": one}) for one in marks]
    assert [one.marks for one in marked] == [((4, 7),), ((4, 7), (7, 10)), ((4, 10),)]
    assert len({plain.content_hash, *(one.content_hash for one in marked)}) == 4


def test_an_interaction_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Interaction.model_validate(OK).answer = "No."


def test_the_content_hash_is_that_of_question_passages_and_answer_alone() -> None:
    passages = (Passage(id="a", text="Text.", score=0.5),)
    one = Interaction(interaction_id="1", app="x", question="Q", passages=passages, answer="A")
    same = Interaction(
        interaction_id="2",
        app="y",
        question="Q",
        passages=(Passage(id="a", text="Text.", score=0.1, metadata={"k": 1}),),
        answer="A",
        metadata={"k": 2},
        occurred_at=datetime(2025, 1, 1, tzinfo=UTC),
    )
    assert one.content_hash == same.content_hash
    # hashlib.sha256(b'["Q",[["a","Text."]],"A"]')
    assert one.content_hash == "791e9c659d3fe6dac76b3db5831d3444753bbc5b024b1580aacea8a3b09da0c7"


contents = st.tuples(
    st.text(max_size=4), st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3))), st.text(max_size=4)
)


@given(contents, contents)
@settings(deadline=None)
def test_contents_hash_alike_only_if_they_are_alike(
    one: tuple[str, list[tuple[str, str]], str], other: tuple[str, list[tuple[str, str]], str]
) -> None:
    assert (content_hash(*one) == content_hash(*other)) == (one == other)


def test_text_that_moves_across_the_border_of_two_fields_changes_the_hash() -> None:
    assert content_hash("ab", [], "c") != content_hash("a", [], "bc")
    assert content_hash("", [("a", "b"), ("c", "d")], "") != content_hash("", [("a", 'b"],["c","d')], "")


letters = st.builds(
    DeadLetter,
    reason=st.sampled_from(RejectReason),
    detail=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40),
    topic=st.just("interactions"),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
    timestamp_ms=st.none() | st.integers(-1, 2**63 - 1),
    size_bytes=st.integers(0, 2**31 - 1),
    value_attached=st.booleans(),
    rejected_at=st.datetimes(timezones=st.just(UTC)),
)
kafka_headers = st.lists(st.tuples(st.text(max_size=5) | st.just("gasp-reason"), st.none() | st.binary())).map(tuple)


@given(letters, kafka_headers)
@settings(deadline=None)
def test_a_dead_letter_travels_in_headers_in_front_of_the_original_ones(
    letter: DeadLetter, original: tuple[tuple[str, bytes | None], ...]
) -> None:
    headers = letter.to_headers(original)
    assert DeadLetter.from_headers(headers) == letter
    assert headers[len(headers) - len(original) :] == original


def test_a_dead_letter_that_is_rejected_again_keeps_the_first_story() -> None:
    traced = (("traceparent", b"00-1"),)
    once = DEAD_LETTER.to_headers(traced)
    again = DEAD_LETTER.model_copy(update={"reason": RejectReason.NULL_VALUE, "topic": "dead"}).to_headers(once)
    assert DeadLetter.from_headers(again).topic == "dead"
    assert original_headers(again) == once
    assert original_headers(once) == traced
    assert dict(once)["gasp-value-attached"] == b"false"


def test_headers_of_another_message_are_no_dead_letter() -> None:
    with pytest.raises(NotADeadLetter) as raised:
        DeadLetter.from_headers([("gasp-reason", b"no such reason"), ("gasp-topic", b"t")])
    assert "reason" in raised.value.fields
    assert "offset" in raised.value.fields


@pytest.mark.parametrize("moment", OUTSIDE_UTC)
def test_a_dead_letter_of_a_time_that_utc_does_not_reach_is_none(moment: datetime) -> None:
    headers = dict(DEAD_LETTER.to_headers()) | {"gasp-rejected-at": moment.isoformat().encode()}
    with pytest.raises(NotADeadLetter) as raised:
        DeadLetter.from_headers(tuple(headers.items()))
    assert raised.value.fields == ("rejected_at",)
