"""What is kept of the pieces of traces, and what a piece does to its trace."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.interaction import MAX_APP_CHARS, MAX_ID_CHARS
from schemas.reject_reason import RejectReason
from schemas.traces.piece import Piece, TraceKey
from schemas.traces.step import Step
from tests.unit.traces.steps import chain, llm, rag, retriever, step
from worker.rules import pieces as rules
from worker.rules.pieces import (
    ClosedBy,
    KnownTrace,
    PieceSkip,
    TracePiece,
    UnusablePiece,
    change_of,
    kept_pieces,
    merged,
    tops,
)

KEY = TraceKey("otlp", "t-1")
FRESH = KnownTrace(1)


def piece(*steps: Step, key: TraceKey = KEY) -> Piece:
    return Piece(key, steps, "otlp")


def kept(*steps: Step) -> TracePiece:
    (found,), unusable = kept_pieces([piece(*steps)])
    assert unusable == []
    return found


def refused(found: Piece) -> UnusablePiece:
    pieces, (unusable,) = kept_pieces([found])
    assert pieces == []
    return unusable


def after(trace: KnownTrace, pieces: Sequence[TracePiece], **more: object) -> KnownTrace:
    """The trace with these pieces kept."""
    values = {
        "n_steps": sum(one.n_steps for one in pieces),
        "size": sum(one.size for one in pieces),
        "digests": frozenset(one.digest for one in pieces),
        **more,
    }
    return KnownTrace(trace.pk, **values)  # type: ignore[arg-type]  # each under its name


def test_the_pieces_of_a_message_are_kept_by_trace_as_what_their_steps_say() -> None:
    other = TraceKey("otlp", "t-2")
    root, found, said = rag()
    pieces, unusable = kept_pieces([piece(found), piece(chain("c", "b"), key=other), piece(root, said)])
    assert unusable == []
    assert [(one.trace, one.n_steps, one.has_root, one.app) for one in pieces] == [
        (KEY, 3, True, "tea-room"),
        (other, 1, False, None),
    ]
    assert [Step.from_json(one) for one in orjson.loads(pieces[0].steps)] == [found, root, said]
    assert pieces[0].size == len(pieces[0].steps.encode())


def test_an_app_that_no_app_can_be_called_is_none() -> None:
    assert kept(chain("c", app="a" * MAX_APP_CHARS)).app == "a" * MAX_APP_CHARS
    assert kept(chain("c", app="a" * (MAX_APP_CHARS + 1))).app is None


def test_what_no_trace_can_take_is_refused_alone() -> None:
    endless = TraceKey("otlp", "x" * (MAX_ID_CHARS + 1))
    found, unusable = kept_pieces([piece(chain("c"), key=endless), piece(llm("said", "root"))])
    assert [one.trace for one in found] == [KEY]
    assert [(one.reason, one.detail) for one in unusable] == [
        (RejectReason.WRONG_SHAPE, "id of a trace: more than 512 characters")
    ]


def test_more_steps_or_bytes_than_a_trace_may_have_are_too_large() -> None:
    many = refused(piece(*[step(f"s{number}", "root") for number in range(rules.MAX_STEPS + 1)]))
    assert (many.reason, many.detail) == (RejectReason.TOO_LARGE, "5001 steps of a trace, the limit is 5000")
    large = refused(piece(llm("said", "root", "x" * rules.MAX_BYTES)))
    assert large.reason is RejectReason.TOO_LARGE


def test_a_number_that_no_reader_would_take_back_is_refused() -> None:
    assert refused(piece(step("s", "root", ended_ns=2**70))).reason is RejectReason.WRONG_SHAPE


def test_a_new_piece_is_added_and_opens_its_trace() -> None:
    change = change_of(FRESH, [kept(chain("c")), kept(llm("said", "c"))])
    assert (change.added, change.skipped, change.opens, change.closes_as, change.late) == ((0, 1), {}, True, None, 0)


def test_a_piece_that_says_what_another_said_changes_nothing() -> None:
    one = kept(llm("said", "c"))
    twice = change_of(FRESH, [one, one])
    again = change_of(after(FRESH, [one]), [one])
    assert (twice.added, twice.opens) == ((0,), True)
    assert (again.added, again.skipped, again.opens) == ((), {}, False)


def test_a_piece_of_a_closed_trace_is_late_and_opens_it_again_if_it_says_more() -> None:
    root, found, said = rag()
    closed = after(FRESH, [kept(root, said)], is_closed=True, closed_by=ClosedBy.COMPLETE)
    assert (change_of(closed, [kept(found)]).opens, change_of(closed, [kept(found)]).late) == (True, 1)
    assert (change_of(closed, [kept(root, said)]).opens, change_of(closed, [kept(root, said)]).late) == (False, 1)


def test_the_same_piece_again_opens_a_trace_that_was_refused() -> None:
    one = kept(*rag())
    refused_trace = after(FRESH, [one], is_closed=True, is_refused=True, closed_by=ClosedBy.COMPLETE)
    change = change_of(refused_trace, [one])
    assert (change.added, change.skipped, change.opens) == ((), {}, True)


def test_when_the_other_pieces_are_gone_a_late_one_is_only_counted() -> None:
    change = change_of(KnownTrace(1, is_closed=True, is_emptied=True), [kept(retriever("found", "root"))])
    assert (change.added, change.skipped, change.opens, change.late) == ((), {0: PieceSkip.LATE_PIECE}, False, 1)


@pytest.mark.parametrize("so_far", [{"n_steps": rules.MAX_STEPS - 1}, {"size": rules.MAX_BYTES - 10}])
def test_what_makes_a_trace_too_large_closes_it_and_nothing_more_is_kept(so_far: dict[str, int]) -> None:
    full = KnownTrace(1, **so_far)  # type: ignore[arg-type]  # each under its name
    change = change_of(full, [kept(llm("a", "b"), llm("b", "c")), kept(llm("c", "d"))])
    assert (change.added, change.opens, change.closes_as) == ((), True, ClosedBy.TOO_LARGE)
    assert change.skipped == {0: PieceSkip.TRACE_TOO_LARGE, 1: PieceSkip.TRACE_TOO_LARGE}
    done = KnownTrace(1, is_closed=True, is_emptied=True, is_refused=True, closed_by=ClosedBy.TOO_LARGE)
    more = change_of(done, [kept(llm("e", "d"))])
    assert (more.skipped, more.opens) == ({0: PieceSkip.TRACE_TOO_LARGE}, False)


def below(key: str, within: str | None) -> TracePiece:
    (found,), _ = kept_pieces([Piece(TraceKey("lc", key), (step(key, within),), "lc", within=within)])
    return found


@given(st.permutations([("a", None), ("b", "a"), ("c", "b"), ("d", "b"), ("e", "d")]), st.data())
def test_keys_that_lie_within_each_other_are_one_trace_under_the_uppermost(
    keys: list[tuple[str, str | None]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(keys)))
    pieces = [below(*key) for key in keys]
    assert set(tops(pieces, {}).values()) == {("lc", "a")}
    first = tops(pieces[:cut], {})
    names = {name: top for name, top in first.items() if name != top}
    names |= {name: top for name, top in tops(pieces[cut:], names).items() if name != top}
    # As the store has it: what belonged to a name that lies within another goes with that.
    tops_of = {key: names.get(names.get(("lc", key), ("lc", key)), names.get(("lc", key))) for key, _ in keys}
    assert {key for key, top in tops_of.items() if top != ("lc", "a")} <= {"a"}


def test_keys_in_a_circle_are_one_trace() -> None:
    circle = [below("a", "c"), below("b", "a"), below("c", "b")]
    assert len(set(tops(circle, {}).values())) == 1


def test_a_trace_takes_over_what_its_parts_have() -> None:
    one, other = kept(chain("c")), kept(llm("said", "c"))
    whole = merged(after(KnownTrace(1), [one]), [after(KnownTrace(2), [other])])
    assert (whole.pk, whole.n_steps, whole.size) == (1, 2, one.size + other.size)
    assert whole.digests == {one.digest, other.digest}
    refused_part = after(KnownTrace(2), [other], closed_by=ClosedBy.TOO_LARGE)
    assert merged(KnownTrace(1), [refused_part]).closed_by is ClosedBy.TOO_LARGE
