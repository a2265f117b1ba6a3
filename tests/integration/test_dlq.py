"""The commands ``gasp-worker dlq …`` on letters that the worker's own code sent, on each broker that we run on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest
from kafka import KafkaAdminClient, TopicPartition
from structlog import reset_defaults
from typer.testing import CliRunner, Result

from schemas.reject_reason import RejectReason
from schemas.replay import Replay, without_history
from tests.apache_kafka import ApacheKafka
from tests.brokers import DEADLINE_S, Broker
from worker.broker.errors import BrokerUnavailable
from worker.broker.scan import TopicScan
from worker.broker.sink import RecordSink
from worker.cli import app, main
from worker.dlq.letters import only_letters
from worker.dlq.originals import Obstacle
from worker.dlq.replay import Homes, ReplayMessage, Sender, Tally
from worker.ingest.dead_letters import DeadLetters
from worker.rules.records import Record
from worker.rules.settlement import Outcome, Settlement

MAX_MESSAGE_BYTES = 10_000
LARGE = b"x" * 20_000
HEADERS = (("trace", b"\x00\xff"), ("trace", b"again"))
NOBODY = "127.0.0.1:1"


@dataclass(frozen=True, slots=True)
class Letters:
    """A topic and its dead-letter topic, with the environment of the commands set to them."""

    broker: Broker
    topic: str
    dead_letter_topic: str

    def die(self, values: Sequence[bytes | None], reason: RejectReason) -> None:
        """Send messages and reject them for a reason, as the worker does."""
        with RecordSink(self.broker.bootstrap) as sink:
            places = [sink.send(self.topic, value, key=b"\xfekey", headers=HEADERS) for value in values]
            offsets = {place.result(DEADLINE_S).offset for place in places}
        self.reject([record for record in self.records(self.topic) if record.offset in offsets], reason)

    def reject(self, records: Sequence[Record], reason: RejectReason) -> None:
        """Send the dead letters of records."""
        settlements = [Settlement(record, Outcome.DEAD_LETTERED, reason, f"for {reason}") for record in records]
        with RecordSink(self.broker.bootstrap) as sink:
            DeadLetters(sink, self.dead_letter_topic, MAX_MESSAGE_BYTES).send(settlements)

    def records(self, topic: str) -> list[Record]:
        """What is in a topic."""
        return [item for item in TopicScan(self.broker.bootstrap, topic) if isinstance(item, Record)]

    def replayed(self) -> list[tuple[Record, Replay]]:
        """The messages that were replayed, with their histories."""
        histories = [(record, Replay.from_headers(record.headers)) for record in self.records(self.topic)]
        return [(record, history) for record, history in histories if history]


@pytest.fixture
def letters(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Letters:
    made = Letters(broker, broker.create_topic(), broker.create_topic())
    set_environment(monkeypatch, bootstrap=broker.bootstrap, topic=made.topic, dead_letter_topic=made.dead_letter_topic)
    return made


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    yield
    reset_defaults()


def set_environment(monkeypatch: pytest.MonkeyPatch, *, bootstrap: str, topic: str, dead_letter_topic: str) -> None:
    variables = {
        "DATABASE_URL": "postgresql://unused/unused",
        "KAFKA_BOOTSTRAP_SERVERS": bootstrap,
        "TOPIC": topic,
        "DEAD_LETTER_TOPIC": dead_letter_topic,
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"GASP_{name}", value)


def dlq(*arguments: str, exit_code: int = 0) -> Result:
    done = CliRunner().invoke(app, ["dlq", *arguments])
    assert done.exit_code == exit_code, (done.output, done.exception)
    return done


def listed(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in dlq("list", "--json", *arguments).stdout.splitlines()]


def test_letters_are_listed_and_counted_with_their_reasons(letters: Letters) -> None:
    letters.die([b"not json", b"{}"], RejectReason.INVALID_JSON)
    letters.die([LARGE], RejectReason.TOO_LARGE)
    letters.die([None], RejectReason.NULL_VALUE)
    shown = listed()
    assert [(one["place"], one["reason"], one["value_attached"]) for one in shown] == [
        ("0:0", "invalid_json", True),
        ("0:1", "invalid_json", True),
        ("0:2", "too_large", False),
        ("0:3", "null_value", False),
    ]
    assert (shown[2]["topic"], shown[2]["offset"], shown[2]["size_bytes"]) == (letters.topic, 2, len(LARGE))
    text = dlq("list").stdout.splitlines()
    assert len(text) == 5
    assert [line.split()[4] for line in text[1:]] == ["attached", "attached", "reference", "none"]

    assert [one["place"] for one in listed("--reason", "too_large", "--reason", "null_value")] == ["0:2", "0:3"]
    assert listed("--since", str(shown[2]["rejected_at"])) == shown[2:]
    assert listed("--until", str(shown[2]["rejected_at"]), "--limit", "1") == shown[:1]
    counts = [json.loads(line) for line in dlq("list", "--summary", "--json").stdout.splitlines()]
    assert {(one["reason"], one["letters"], one["example"]) for one in counts} == {
        ("invalid_json", 2, "0:1"),
        ("too_large", 1, "0:2"),
        ("null_value", 1, "0:3"),
    }
    assert "for invalid_json" in dlq("list", "--summary").stdout.splitlines()[1]


def test_a_message_of_which_several_rows_are_wrong_is_one_letter(letters: Letters) -> None:
    with RecordSink(letters.broker.bootstrap) as sink:
        sink.send(letters.topic, b"[]").result(DEADLINE_S)
        (record,) = letters.records(letters.topic)
        bad = [
            Settlement(record, Outcome.DEAD_LETTERED, RejectReason.WRONG_SHAPE, "answer: missing", item=item)
            for item in (2, 3, 5)
        ]
        good = Settlement(record, Outcome.SKIPPED, "duplicate")
        DeadLetters(sink, letters.dead_letter_topic, MAX_MESSAGE_BYTES).send([good, *bad])
    (shown,) = listed()
    assert (shown["offset"], shown["reason"], shown["detail"]) == (
        record.offset,
        "wrong_shape",
        "row 2: answer: missing; and 2 more",
    )


def test_an_empty_topic_says_so(letters: Letters) -> None:
    assert dlq("list").stdout == f"no such dead letters in {letters.dead_letter_topic}\n"
    assert dlq("list", "--summary").stdout == f"no such dead letters in {letters.dead_letter_topic}\n"
    assert listed() == []
    assert dlq("replay", "--all").stdout == f"sent 0 to {letters.topic}\n"
    assert "there is none" in dlq("show", "0:0", exit_code=2).stderr


def test_a_letter_is_shown_with_its_bytes_made_harmless_and_saved_as_they_are(
    letters: Letters, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hostile = b"\x1b[2J\xff{'answer': 'x'}"
    letters.die([hostile], RejectReason.INVALID_UTF8)
    file = tmp_path_factory.mktemp("saved") / "value"
    page = dlq("show", "0:0", "--save", str(file)).stdout
    assert "\x1b" not in page
    assert "  \\x1b[2J\N{REPLACEMENT CHARACTER}{'answer': 'x'}" in page.splitlines()
    assert "header      trace: again" in page.splitlines()
    assert file.read_bytes() == hostile


def test_a_value_that_is_in_its_original_topic_only_is_shown_from_there(letters: Letters) -> None:
    letters.die([LARGE], RejectReason.TOO_LARGE)
    page = dlq("show", "0:0", "--max-chars", "8").stdout.splitlines()
    assert page[-3:] == [
        "value",
        "  xxxxxxxx",
        "... and 19992 more characters; --max-chars shows them, --save keeps all",
    ]


def test_a_replay_sends_key_bytes_and_headers_with_the_history_in_front(letters: Letters) -> None:
    letters.die([b"not json", b"also not"], RejectReason.INVALID_JSON)
    letters.die([LARGE], RejectReason.TOO_LARGE)
    assert dlq("replay", "--reason", "too_large", "--reason", "invalid_json", "--limit", "2").stdout == (
        f"sent 2 to {letters.topic}\n"
    )
    dlq("replay", "--reason", "too_large")
    replayed = letters.replayed()
    assert [record.value for record, _ in replayed] == [b"not json", b"also not", LARGE]
    for record, history in replayed:
        assert record.key == b"\xfekey"
        assert without_history(record.headers) == HEADERS
        assert history.count == 1
    assert [(history.offset, history.reason) for _, history in replayed] == [
        (0, RejectReason.INVALID_JSON),
        (1, RejectReason.INVALID_JSON),
        (2, RejectReason.TOO_LARGE),
    ]


def test_a_dry_run_tells_what_would_be_sent_and_sends_nothing(letters: Letters) -> None:
    letters.die([b"not json", b"also not"], RejectReason.INVALID_JSON)
    lines = dlq("replay", "--all", "--dry-run").stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["0:0", "0:1"]
    assert lines[2] == f"would send 2 to {letters.topic}"
    assert letters.replayed() == []


def test_nothing_is_sent_unless_something_is_selected(letters: Letters) -> None:
    letters.die([b"not json"], RejectReason.INVALID_JSON)
    assert "--all" in dlq("replay", "--limit", "5", exit_code=2).stderr
    assert letters.replayed() == []


def test_a_message_that_fails_again_is_counted_up_and_left_in_the_end(letters: Letters) -> None:
    letters.die([b"not json"], RejectReason.INVALID_JSON)
    for count in (1, 2, 3):
        dlq("replay", "--all")
        replayed = letters.replayed()
        assert [history.count for _, history in replayed] == list(range(1, count + 1))
        letters.reject([replayed[-1][0]], RejectReason.WRONG_SHAPE)
    assert [one["replay"] and one["replay"]["count"] for one in listed()] == [None, 1, 2, 3]  # type: ignore[index]  # JSON
    left = dlq("replay", "--all", exit_code=1).stdout.splitlines()
    assert left[0] == f"sent 0 to {letters.topic}"
    assert [line.split(":")[0] for line in left[1:]] == ["left 3", "left 1"]
    assert {history.offset for _, history in letters.replayed()} == {0}
    assert {len(record.headers) for record, _ in letters.replayed()} == {7 + len(HEADERS)}


def test_what_is_no_dead_letter_is_listed_as_such_and_never_sent(letters: Letters) -> None:
    letters.broker.send(letters.dead_letter_topic, [b"\x1b[31mforeign"])
    letters.broker.send_undecodable(letters.dead_letter_topic)
    letters.die([b"not json"], RejectReason.INVALID_JSON)
    assert [(one["place"], "problem" in one) for one in listed()] == [
        ("0:0", True),
        ("0:1", True),
        ("0:2-3", True),
        ("0:4", False),
    ]
    assert "\x1b" not in dlq("list").stdout
    assert "no dead letter" in dlq("show", "0:0").stdout
    assert [one["place"] for one in listed("--reason", "invalid_json")] == ["0:4"]
    assert dlq("replay", "--all").stdout == f"sent 1 to {letters.topic}\n"


def test_a_letter_whose_original_is_not_the_same_message_is_left(letters: Letters) -> None:
    """The topic was created anew, say: another message lies at the offset."""
    letters.broker.send(letters.topic, [b"another message"])
    (there,) = letters.records(letters.topic)
    claimed = Record(letters.topic, 0, 0, b"key", LARGE[: MAX_MESSAGE_BYTES + 1], (), there.timestamp_ms)
    letters.reject([claimed], RejectReason.TOO_LARGE)
    assert "no longer in the original topic" in dlq("replay", "--all", exit_code=1).stdout
    assert dlq("show", "0:0").stdout.splitlines()[-1].startswith("value       its bytes are no longer")
    assert letters.replayed() == []


def test_a_letter_does_not_choose_which_topic_is_read(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    letters.die([LARGE], RejectReason.TOO_LARGE)
    other = letters.broker.create_topic()
    monkeypatch.setenv("GASP_TOPIC", other)
    assert "in another topic" in dlq("replay", "--all", exit_code=1).stdout
    assert dlq("replay", "--topic", letters.topic).stdout == f"sent 1 to {other}\n"


def test_a_message_over_the_limit_is_left_until_the_limit_is_raised(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_MAX_MESSAGE_BYTES", str(MAX_MESSAGE_BYTES))
    letters.die([LARGE], RejectReason.TOO_LARGE)
    assert "larger than GASP_MAX_MESSAGE_BYTES" in dlq("replay", "--all", exit_code=1).stdout
    monkeypatch.setenv("GASP_MAX_MESSAGE_BYTES", str(2 * len(LARGE)))
    dlq("replay", "--all")
    assert [record.value for record, _ in letters.replayed()] == [LARGE]


def test_a_hundred_letters_arrive_each_once(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.dlq.replay.FLUSH_EVERY", 7)
    values: list[bytes | None] = [b"%d" % number for number in range(100)]
    letters.die(values, RejectReason.NOT_AN_OBJECT)
    assert dlq("replay", "--detail", "NOT_an_object").stdout == f"sent 100 to {letters.topic}\n"
    assert sorted(record.value or b"" for record, _ in letters.replayed()) == sorted(value or b"" for value in values)


@pytest.mark.kafka
def test_a_letter_whose_original_was_taken_by_retention_is_left(
    apache: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Letters(apache, apache.create_topic(), apache.create_topic())
    set_environment(monkeypatch, bootstrap=apache.bootstrap, topic=made.topic, dead_letter_topic=made.dead_letter_topic)
    made.die([LARGE, b"attached"], RejectReason.TOO_LARGE)
    with closing(KafkaAdminClient(bootstrap_servers=apache.bootstrap)) as admin:
        admin.delete_records({TopicPartition(made.topic, 0): 2})
    left = dlq("replay", "--all", exit_code=1).stdout.splitlines()
    assert left == [f"sent 1 to {made.topic}", f"left 1: {Obstacle.GONE} (such as 0:0)"]


@pytest.mark.kafka
def test_messages_that_their_topic_does_not_take_are_left_and_the_others_are_sent(
    apache: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Letters(apache, apache.create_topic(), apache.create_topic())
    narrow = apache.create_topic(config={"max.message.bytes": "5000"})
    set_environment(monkeypatch, bootstrap=apache.bootstrap, topic=narrow, dead_letter_topic=made.dead_letter_topic)
    made.die([b"small", b"x" * 6000, b"small too", b"y" * 6000, b"last"], RejectReason.SCORING_FAILED)
    left = dlq("replay", "--all", exit_code=1).stdout.splitlines()
    assert left == [f"sent 3 to {narrow}", f"left 2: {Obstacle.TOO_LARGE} (such as 0:1)"]
    assert [record.value for record in made.records(narrow)] == [b"small", b"small too", b"last"]


@pytest.mark.kafka
def test_letters_that_their_topic_does_not_take_go_by_reference_and_the_others_whole(apache: Broker) -> None:
    narrow = apache.create_topic(partitions=3, config={"max.message.bytes": "5000"})
    sizes = [10, 6000, 10, 7000, 8000, 10] * 10
    records = [Record("original", 0, number, b"%d" % number, b"x" * size) for number, size in enumerate(sizes)]
    settlements = [Settlement(record, Outcome.DEAD_LETTERED, RejectReason.SCORING_FAILED) for record in records]
    with RecordSink(apache.bootstrap) as sink:
        letters = DeadLetters(sink, narrow, MAX_MESSAGE_BYTES)
        letters.send(settlements[:30])
        letters.send(settlements[30:])
    found = list(only_letters(TopicScan(apache.bootstrap, narrow)))
    attached = {letter.facts.offset: letter.facts.value_attached for letter in found}
    assert attached == {number: size == 10 for number, size in enumerate(sizes)}
    assert len(found) == len(sizes)


@pytest.mark.kafka
def test_a_letter_whose_headers_alone_are_too_large_brings_its_place_and_reason_and_is_left_by_replay(
    apache: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = apache.create_topic(config={"max.message.bytes": "5000"})
    flooded = Record("original", 0, 7, b"key", b"{", headers=(("trace", b"t" * 6000),))
    with RecordSink(apache.bootstrap) as sink:
        settlement = Settlement(flooded, Outcome.DEAD_LETTERED, RejectReason.INVALID_JSON)
        DeadLetters(sink, narrow, MAX_MESSAGE_BYTES).send([settlement])
    (letter,) = only_letters(TopicScan(apache.bootstrap, narrow))
    assert (letter.facts.offset, letter.facts.value_attached, letter.facts.headers_attached) == (7, False, False)
    assert (letter.record.key, letter.headers) == (None, ())
    set_environment(monkeypatch, bootstrap=apache.bootstrap, topic=apache.create_topic(), dead_letter_topic=narrow)
    assert Obstacle.TOO_LARGE in dlq("replay", "--all", exit_code=1).stdout


@pytest.mark.kafka
def test_a_broker_that_goes_away_leaves_a_true_count(own_apache: Broker, apache_node: ApacheKafka) -> None:
    made = Letters(own_apache, own_apache.create_topic(), own_apache.create_topic())
    made.die([b"one"], RejectReason.INVALID_JSON)
    (letter,) = only_letters(TopicScan(own_apache.bootstrap, made.dead_letter_topic))
    tally = Tally()

    def send_two() -> None:
        with (
            RecordSink(own_apache.bootstrap, delivery_timeout_s=11) as sink,
            Sender(sink, Homes(made.topic), tally) as sender,
        ):
            sender.send(letter, ReplayMessage(None, b"one", ()))
            sender.confirm()
            apache_node.kill()
            sender.send(letter, ReplayMessage(None, b"two", ()))

    try:
        with pytest.raises(BrokerUnavailable):
            send_two()
        assert (tally.sent, tally.unconfirmed, tally.left) == (1, 1, {})
    finally:
        apache_node.kill()
        apache_node.start()


def run_main(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command as a process would run it; gives its exit status."""
    monkeypatch.setattr("sys.argv", ["gasp-worker", "dlq", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(str(ended.value.code))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("arguments", [("list",), ("show", "0:0"), ("replay", "--all")])
def test_a_broker_that_is_away_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    set_environment(monkeypatch, bootstrap=NOBODY, topic="topic", dead_letter_topic="dead")
    assert run_main(monkeypatch, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [captured.err.strip()]
    assert NOBODY in captured.err


@pytest.mark.parametrize("missing", ["topic", "dead_letter_topic"])
def test_a_missing_topic_is_named(
    letters: Letters, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    letters.die([b"not json"], RejectReason.INVALID_JSON)
    monkeypatch.setenv(f"GASP_{missing.upper()}", f"{letters.topic}-missing")
    assert run_main(monkeypatch, "replay", "--all") == 2
    assert f"{letters.topic}-missing does not exist" in capsys.readouterr().err


def test_a_label_that_died_goes_back_to_the_topic_of_labels(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = letters.broker.create_topic()
    monkeypatch.setenv("GASP_REVIEW_LABELS_TOPIC", labels)
    died_there = Letters(letters.broker, labels, letters.dead_letter_topic)
    died_there.die([b"a label"], RejectReason.BAD_LABEL)
    died_there.die([LARGE[:9_000]], RejectReason.UNKNOWN_SENTENCE)
    letters.die([b"an exchange"], RejectReason.INVALID_JSON)
    told = [f"1 to {letters.topic}", f"2 to {labels}"]
    assert dlq("replay", "--all", "--dry-run").stdout.splitlines()[-2:] == [f"would send {one}" for one in told]
    assert dlq("replay", "--all").stdout.splitlines() == [f"sent {one}" for one in told]
    assert [record.value for record, _ in died_there.replayed()] == [b"a label", LARGE[:9_000]]
    assert [record.value for record, _ in letters.replayed()] == [b"an exchange"]
