from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from schemas.traces.piece import Piece, TraceKey, pieces_of, uppermost_keys
from schemas.traces.step import Step


def piece(own: str, within: str | None = None, system: str = "s") -> Piece:
    return Piece(TraceKey(system, own), (Step(id=own),), "a", within)


def wholes(*pieces: Piece) -> dict[str, str]:
    return {key.id: whole.id for key, whole in uppermost_keys(pieces).items()}


def test_steps_are_a_piece_for_each_trace_in_order() -> None:
    first, second, third = Step(id="1"), Step(id="2"), Step(id="3")
    assert pieces_of("s", [("t", first), ("u", second), ("t", third)], "a") == (
        Piece(TraceKey("s", "t"), (first, third), "a"),
        Piece(TraceKey("s", "u"), (second,), "a"),
    )


def test_pieces_that_lie_within_others_are_of_the_uppermost_trace() -> None:
    assert wholes(piece("c", "b"), piece("d", "b"), piece("b", "a"), piece("a"), piece("z")) == {
        **dict.fromkeys("abcd", "a"),
        "z": "z",
    }


def test_a_key_that_was_not_seen_still_joins_those_below_it() -> None:
    assert wholes(piece("c", "b"), piece("d", "b")) == {"c": "b", "d": "b"}


def test_ids_of_another_system_are_others() -> None:
    keys = uppermost_keys([piece("b", "a", "s"), piece("a", None, "s"), piece("a", None, "t")])
    assert keys[TraceKey("t", "a")] == TraceKey("t", "a")


def test_a_circle_is_one_trace() -> None:
    assert wholes(piece("b", "c"), piece("c", "a"), piece("a", "b"), piece("d", "b")) == dict.fromkeys("abcd", "a")


def test_a_long_way_up_ends() -> None:
    chain = [piece(str(number), str(number - 1)) for number in range(1, 50_000)]
    assert set(wholes(*chain).values()) == {"0"}


NAMES = st.sampled_from("abcdefg")


@given(st.lists(st.builds(piece, NAMES, st.none() | NAMES), unique_by=lambda one: one.trace), st.randoms())
def test_the_order_of_pieces_makes_no_difference(pieces: list[Piece], random: Random) -> None:
    shuffled = list(pieces)
    random.shuffle(shuffled)
    assert uppermost_keys(shuffled) == uppermost_keys(pieces)
