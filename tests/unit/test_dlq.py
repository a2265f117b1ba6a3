"""Dead letters as the commands see them: what is meant, what is told, what would be sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core.terminal import visible
from schemas.dead_letter import DeadLetter
from schemas.reject_reason import RejectReason
from schemas.replay import Replay, without_history
from worker.broker.scan import TopicScan
from worker.broker.sink import Place
from worker.broker.unreadable import Unreadable
from worker.dlq.letter_filter import LetterFilter
from worker.dlq.letters import Letter, Stranger, read_letter
from worker.dlq.originals import Obstacle, Originals
from worker.dlq.page import letter_json, letter_line, letter_page
from worker.dlq.replay import Replayer, ReplayMessage, Tally, newest_letters, replay_letters
from worker.dlq.summary import MAX_KINDS, OTHER_DETAILS, summarize
from worker.rules.records import Record
from worker.terminal.times import parse_time

MORNING = datetime(2026, 11, 30, 3, tzinfo=UTC)
TRACE = (("trace", b"7f"),)
HOSTILE = "\x1b[2J\x1b]0;title\x07\r\n\u202e\x9bred\x00"


def letter_of(number: int = 0, *, replay: Replay | None = None, value: bytes | None = b"{}", **facts: object) -> Letter:
    """A letter at this offset of the dead-letter topic, read as from there."""
    given: dict[str, object] = {
        "reason": RejectReason.WRONG_SHAPE,
        "topic": "interactions",
        "partition": 3,
        "offset": 1000 + number,
        "size_bytes": len(value or b""),
        "value_attached": value is not None,
        "rejected_at": MORNING,
        **facts,
    }
    headers = DeadLetter.model_validate(given).to_headers(replay.to_headers(TRACE) if replay else TRACE)
    letter = read_letter(Record("dead", 0, number, b"key", value, headers))
    assert isinstance(letter, Letter)
    return letter


def replay_of(offset: int, count: int) -> Replay:
    """The history of a message that first lay where ``letter_of(offset)`` says."""
    return Replay(
        count=count,
        topic="interactions",
        partition=3,
        offset=1000 + offset,
        reason=RejectReason.TOO_LARGE,
        replayed_at=MORNING,
    )


def never_opened(topic: str) -> TopicScan:
    raise AssertionError(topic)


def replayer(letters: Sequence[Letter] = (), **limits: int) -> Replayer:
    given = {"max_message_bytes": 1_000, "max_replays": 3, **limits}
    return Replayer(Originals(never_opened, {"interactions"}), newest_letters(letters), **given)


def sent_by(letters: Sequence[Letter], *, limit: int | None = None) -> tuple[list[Place], Tally]:
    """The places of the letters that are sent when all of them lie in the topic."""
    sent: list[Place] = []
    tally = Tally()
    replay_letters(letters, replayer(letters).prepare, lambda letter, _: sent.append(letter.place), tally, limit)
    return sent, tally


@pytest.mark.parametrize(
    ("selection", "meant"),
    [
        (LetterFilter(), {0, 1, 2}),
        (LetterFilter(reasons=frozenset({RejectReason.TOO_LARGE, RejectReason.TOO_DEEP})), {1}),
        (LetterFilter(since=MORNING), {1, 2}),
        (LetterFilter(until=MORNING), {0}),
        (LetterFilter(since=MORNING, until=MORNING + timedelta(seconds=1)), {1}),
        (LetterFilter(topic="interactions", partition=3), {0, 1, 2}),
        (LetterFilter(topic="others"), set()),
        (LetterFilter(partition=0), set()),
        (LetterFilter(offset=1002), {2}),
        (LetterFilter(detail="PASSAGES.0"), {2}),
    ],
)
def test_a_selection_means_the_letters_that_meet_all_of_it(selection: LetterFilter, meant: set[int]) -> None:
    letters = [
        letter_of(0, rejected_at=MORNING - timedelta(hours=1)),
        letter_of(1, reason=RejectReason.TOO_LARGE),
        letter_of(2, detail="passages.0.text: string_type", rejected_at=MORNING + timedelta(hours=1)),
    ]
    assert {letter.place.offset for letter in letters if selection.matches(letter.facts)} == meant
    assert selection.means_all is (selection == LetterFilter())


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30T03:00", MORNING),
        ("2026-11-30 03:00:00Z", MORNING),
        ("2026-11-30T04:00+01:00", MORNING),
        ("2026-11-30", MORNING.replace(hour=0)),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, moment: datetime) -> None:
    assert parse_time(text) == moment


@pytest.mark.parametrize("text", ["yesterday", "", "1764471600000", "0001-01-01T00:00+14:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_time(text)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("gasp-reason", b"too_large"),),
        (*letter_of().record.headers[:-2], ("gasp-rejected-at", b"0001-01-01T00:00:00+14:00")),
        tuple((name, b"\xff\x1b") for name, _ in letter_of().record.headers),
    ],
)
def test_a_record_without_the_facts_is_a_stranger(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    found = read_letter(Record("dead", 0, 4, None, b"x", headers))
    assert isinstance(found, Stranger)
    assert (found.offset, found.next_offset) == (4, 5)
    assert "no dead letter" in letter_line(found)
    assert json.loads(letter_json(found))["place"] == "0:4"


def test_a_gap_is_a_stranger_with_all_its_offsets() -> None:
    found = read_letter(Unreadable(0, 4, 7))
    assert isinstance(found, Stranger)
    assert json.loads(letter_json(found))["place"] == "0:4-6"


@given(st.text())
def test_visible_text_is_one_line_of_printable_characters(text: str) -> None:
    assert visible(text).isprintable()
    assert set(visible(text, keep="\n\t")) <= {"\n", "\t"} | {char for char in visible(text) if char.isprintable()}


def test_nothing_in_a_letter_reaches_the_terminal_as_a_control_character() -> None:
    hostile = HOSTILE.encode()
    facts = letter_of(1, topic=HOSTILE.replace("\x00", ""), detail=HOSTILE.replace("\x00", ""))
    record = Record("dead", 0, 1, hostile, hostile, (*facts.record.headers, (HOSTILE, hostile), ("null", None)))
    letter = read_letter(record)
    assert isinstance(letter, Letter)
    page = "\n".join(letter_page(letter, hostile, 100))
    assert {char for char in page if not char.isprintable()} == {"\n"}
    assert "\\x1b[2J" in page
    assert letter_line(letter).isprintable()
    assert letter_json(letter).isprintable()
    assert letter_json(letter).isascii()


def test_a_page_tells_what_is_known_and_cuts_the_value() -> None:
    page = list(letter_page(letter_of(5, replay=replay_of(2, 2), value=b"line one\nline two" * 10), b"abc\ndef", 5))
    assert "replayed    2 times, last at 2026-11-30T03:00:00+00:00; it was dead for too_large then" in page
    assert "at first    interactions[3]@1002" in page
    assert "header      trace: 7f" in page
    assert page[-3:] == ["  abc", "  d", "... and 2 more characters; --max-chars shows them, --save keeps all"]


def test_a_letter_is_one_json_object_whatever_its_numbers() -> None:
    shown = json.loads(letter_json(letter_of(5, replay=replay_of(2, 1), offset=10**30)))
    assert (shown["place"], shown["offset"], shown["reason"]) == ("0:5", 10**30, "wrong_shape")
    assert (shown["replay"]["count"], shown["replay"]["offset"]) == (1, 1002)


def test_a_summary_counts_by_reason_and_detail() -> None:
    hour = timedelta(hours=1)
    letters = [
        letter_of(0, detail="a"),
        letter_of(1, detail="b", rejected_at=MORNING + hour),
        letter_of(2, detail="b", rejected_at=MORNING - hour),
    ]
    kinds, strangers = summarize([*letters, Stranger(0, 3, 7, "no")])
    assert [(kind, count.letters, count.example.offset) for kind, count in kinds] == [
        ((RejectReason.WRONG_SHAPE, "b"), 2, 1),
        ((RejectReason.WRONG_SHAPE, "a"), 1, 0),
    ]
    assert (kinds[0][1].first, kinds[0][1].last) == (MORNING - hour, MORNING + hour)
    assert strangers == 4


def test_a_summary_does_not_grow_with_the_details() -> None:
    kinds, _ = summarize(letter_of(number, detail=f"made up {number}") for number in range(MAX_KINDS + 50))
    assert len(kinds) == MAX_KINDS + 1
    assert (kinds[0][0][1], kinds[0][1].letters) == (OTHER_DETAILS, 50)


def test_a_message_goes_as_it_was_with_its_history_in_front() -> None:
    message = replayer().prepare(letter_of(7, value=b"\x00bytes"))
    assert isinstance(message, ReplayMessage)
    assert (message.key, message.value) == (b"key", b"\x00bytes")
    assert without_history(message.headers) == TRACE
    replay = Replay.from_headers(message.headers)
    assert replay is not None
    assert (replay.count, replay.offset, replay.reason) == (1, 1007, RejectReason.WRONG_SHAPE)


def test_the_history_is_counted_up_and_does_not_grow() -> None:
    message = replayer().prepare(letter_of(7, replay=replay_of(2, 2)))
    assert isinstance(message, ReplayMessage)
    replay = Replay.from_headers(message.headers)
    assert replay is not None
    assert (replay.count, replay.offset, replay.reason) == (3, 1002, RejectReason.WRONG_SHAPE)
    assert without_history(message.headers) == TRACE


def test_a_message_that_never_had_bytes_goes_without_any() -> None:
    message = replayer().prepare(letter_of(value=None, reason=RejectReason.NULL_VALUE))
    assert isinstance(message, ReplayMessage)
    assert message.value is None


def test_a_message_that_dies_again_and_again_is_left() -> None:
    letter = letter_of(7, replay=replay_of(2, 3))
    assert replayer().prepare(letter) is Obstacle.TOO_OFTEN
    assert isinstance(replayer(max_replays=4).prepare(letter), ReplayMessage)


@pytest.mark.parametrize(
    ("facts", "obstacle"),
    [
        ({"value": b"x" * 1001}, Obstacle.TOO_LARGE),
        ({"value": None, "size_bytes": 60_000_000}, Obstacle.TOO_LARGE),
        ({"value": None, "size_bytes": 10, "topic": "payroll"}, Obstacle.ELSEWHERE),
    ],
)
def test_a_letter_that_cannot_be_sent_is_left_without_a_look_at_its_original(
    facts: dict[str, object], obstacle: Obstacle
) -> None:
    assert replayer().prepare(letter_of(7, **facts)) is obstacle  # type: ignore[arg-type]  # the value is among the facts


def test_only_the_newest_letter_of_a_message_is_sent() -> None:
    letters = [
        letter_of(0),
        letter_of(1),
        letter_of(2, replay=replay_of(0, 1), offset=2000),
        letter_of(3, replay=replay_of(0, 2), offset=2001),
        # The worker ended between the dead letter and the ledger: the same letter once more.
        letter_of(4, replay=replay_of(0, 2), offset=2001, rejected_at=MORNING + timedelta(seconds=9)),
    ]
    sent, tally = sent_by(letters)
    assert [place.offset for place in sent] == [1, 4]
    assert tally.left == {Obstacle.SUPERSEDED: 3}
    assert tally.examples[Obstacle.SUPERSEDED].offset == 0


def test_the_limit_counts_what_is_sent() -> None:
    letters = [letter_of(0, replay=replay_of(0, 3)), *(letter_of(number) for number in range(1, 5))]
    sent, tally = sent_by(letters, limit=2)
    assert [place.offset for place in sent] == [1, 2]
    assert tally.left == {Obstacle.TOO_OFTEN: 1}
