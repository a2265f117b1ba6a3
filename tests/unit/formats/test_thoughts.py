from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.payload import JsonObject
from schemas.thoughts import shown_part, with_thoughts_apart

ANSWER = "The gate opens at nine."


@pytest.mark.parametrize(
    ("logged", "thoughts"),
    [
        (f"<think>\nNine, says the note.\n</think>\n\n{ANSWER}", "Nine, says the note."),
        (f"  <Thinking>a</Thinking>{ANSWER}", "a"),
        (f"<think></think>{ANSWER}", None),
        (f'<reasoning effort="low">a</reasoning>{ANSWER}', "a"),
        (f"[THINK]a[/THINK]{ANSWER}", "a"),
        (f"◁think▷a◁/think▷{ANSWER}", "a"),
        (
            f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>{ANSWER}",
            "a",
        ),
        (
            f'<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\na</details>\n{ANSWER}',
            None,
        ),
        # One block after another, one in another, one that only its text names, one that the template opened.
        (f"<think>a</think>\n<think>b</think>{ANSWER}", "a\nb"),
        (f"<think>a <think>b</think> c</think>{ANSWER}", "a <think>b</think> c"),
        (f"<think>They ask what <think> is.</think>{ANSWER}", "They ask what <think> is."),
        (f"Nine, says the note.\n</think>\n\n{ANSWER}", "Nine, says the note."),
    ],
)
def test_thoughts_are_taken_off_the_beginning(logged: str, thoughts: str | None) -> None:
    found = shown_part(logged)
    assert found.text == ANSWER
    assert logged[found.start :] == ANSWER
    assert thoughts is None or found.thoughts == thoughts


@pytest.mark.parametrize("logged", ["<think>Nine, says the note", "<think>a <think>b</think", "<think>"])
def test_thoughts_without_an_end_leave_no_answer(logged: str) -> None:
    assert shown_part(logged).text == ""


@pytest.mark.parametrize(
    "logged",
    [
        ANSWER,
        "The tag <think>a</think> marks thoughts.",
        "It ends with </think> on the same line.",
        "<thinker>a</thinker>",
        "</think",
        "",
        " \n",
        '<details type="plain">a</details>',
    ],
)
def test_tags_elsewhere_are_part_of_the_answer(logged: str) -> None:
    assert shown_part(logged) == type(shown_part(logged))(logged)


def test_thoughts_are_kept_as_metadata_behind_those_that_were_apart_already() -> None:
    native: JsonObject = {"answer": f"<think>b</think>{ANSWER}", "metadata": {"user": "u", "thoughts": "a"}}
    assert with_thoughts_apart(native) == {"answer": ANSWER, "metadata": {"user": "u", "thoughts": "a\nb"}}


def test_spans_of_the_answer_move_with_it() -> None:
    logged = f"<think>a[1]</think>{ANSWER}[2]"
    marks: list[JsonValue] = [{"start": logged.index(mark), "end": logged.index(mark) + 3} for mark in ("[1]", "[2]")]
    apart = with_thoughts_apart({"answer": logged, "answer_marks": [*marks, "none"]})
    assert apart["answer_marks"] == [{"start": len(ANSWER), "end": len(ANSWER) + 3}, "none"]


@pytest.mark.parametrize("native", [{"answer": None}, {"answer": ANSWER, "metadata": 5}, {}])
def test_an_exchange_without_thoughts_stays_as_it_is(native: JsonObject) -> None:
    assert with_thoughts_apart(native) is native


tags = st.sampled_from(["<think>", "</think>", "\n", "</thinking>", "<thinking>", "a", " ", "[THINK]", "[/THINK]"])


@given(st.lists(tags, max_size=12).map("".join))
def test_nothing_more_is_taken_off_what_was_shown(logged: str) -> None:
    found = shown_part(logged)
    assert logged.endswith(found.text)
    assert shown_part(found.text).start == 0
