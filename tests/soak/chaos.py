"""Carries the schedule out, and measures how long the workers take over it."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psycopg

from tests.apache_kafka import ApacheKafka
from tests.soak import checks
from tests.soak.crew import LOOK_S, Crew, Member, hold, log_events
from tests.soak.database import Database
from tests.soak.database import Step as Advance
from tests.soak.fate import Point
from tests.soak.journal import Journal
from tests.soak.schedule import GENTLY, WITH_TERM, Blow, Step
from tests.soak.topic import add_partitions

MAX_TERM_EXIT_S = 30.0
MAX_TAKEOVER_S = 5.0
MAX_SECOND_TERM_EXIT_S = 2.0
# How long a worker may take to come to the point where its fate waits.
FATE_DEADLINE_S = 60.0
CALM_DEADLINE_S = 60.0
REGAIN_DEADLINE_S = 90.0
FENCED_DEADLINE_S = 20.0
LONGEST_PAUSE_S = 1.0
LONGEST_OUTAGE_S = 3.0
MAX_NOTICE_S = 30.0
# Longer than a wait for the server lasts before it is given up, and than a stop may take.
FREEZE_S = 40.0
# Until a worker is told to end.
LONGEST_FROZEN_S = 15.0


@dataclass(frozen=True, slots=True)
class LostBooks:
    """What a database had in it when a backup was put in its place.

    ``steps`` of all offsets, ``events`` of the review tasks, and how many offsets were settled since the backup.
    """

    steps: list[Advance]
    events: set[str]
    offsets: int


@dataclass(slots=True)
class Tally:
    """What was done and measured. Seconds, the longest of each."""

    done: Counter[str] = field(default_factory=Counter)
    term_exits_s: list[float] = field(default_factory=list)
    second_term_exits_s: list[float] = field(default_factory=list)
    takeovers_s: list[float] = field(default_factory=list)
    frozen_exits_s: list[float] = field(default_factory=list)
    thaws_s: list[float] = field(default_factory=list)
    notices_s: list[float] = field(default_factory=list)
    lost_books: list[LostBooks] = field(default_factory=list)
    stops_fenced: int = 0
    wrong: list[str] = field(default_factory=list)

    def count(self, *blows: Blow) -> int:
        """How often these blows fell."""
        return sum(times for name, times in self.done.items() if name.split(":")[0] in blows)


class Chaos:
    """Deals the blows one after another; what the workers do wrong under them is kept in ``tally.wrong``."""

    def __init__(
        self,
        *,
        crew: Crew,
        kafka: ApacheKafka,
        database: Database,
        journal: Journal,
        seed: int,
    ) -> None:
        self.tally = Tally()
        self._crew = crew
        self._kafka = kafka
        self._database = database
        self._journal = journal
        self._chance = random.Random(seed + 1)

    def deal(self, step: Step) -> None:
        """Deal one blow, and wait for what it is about."""
        self._journal.note("blow", blow=str(step))
        with self._company(step):
            self._deal(step)
        self.tally.done[str(step)] += 1

    def wait_for_calm(self, deadline_s: float = CALM_DEADLINE_S) -> bool:
        """Wait until every worker has taken two steps from now on, and every partition is held by one of them."""
        begun = datetime.now(UTC)
        return hold(lambda: self._is_calm(begun), deadline_s)

    def _deal(self, step: Step) -> None:
        deal: dict[Blow, Callable[[], None]] = {
            Blow.KILL: lambda: self._kill(step.how),
            Blow.TERM: self._term,
            Blow.TERM_TWICE: self._term_twice,
            Blow.STOP: self._stop,
            Blow.BROKER: lambda: self._restart_broker(step.how),
            Blow.DATABASE: lambda: self._restart_database(step.how),
            Blow.SCALE: lambda: self._scale(int(step.how)),
            Blow.GROW: lambda: self._grow(int(step.how)),
            Blow.FREEZE: lambda: self._freeze(step.how),
            Blow.BACKUP: self._database.back_up,
            Blow.RESTORE: self._restore,
        }
        deal[step.blow]()

    @contextmanager
    def _company(self, step: Step) -> Iterator[None]:
        """A second worker where a crew of one has nobody to take over."""
        alone = self._crew.size == 1 and step.blow in {Blow.TERM, Blow.STOP}
        if alone:
            self._crew.resize(2)
            self.wait_for_calm()
        yield
        if alone:
            self._scale(1)

    # --- workers ---

    def _kill(self, where: str) -> None:
        if where == Point.IN_REVOKE:
            self.wait_for_calm()
        self._wait_for_owner()
        # Of a crew that is doubled, only who holds the most is sure to give something up.
        fullest = max(self._crew.members(), key=lambda member: len(self._held_by(member)))
        victim = fullest if where == Point.IN_REVOKE else self._pick()
        if where == "anywhere":
            self._wait_a_moment()
            victim.send(signal.SIGKILL, -signal.SIGKILL)
            return
        victim.die_at(Point(where))
        if where == Point.IN_REVOKE:
            self._die_in_revoke(victim)
        elif not hold(lambda: not victim.alive, FATE_DEADLINE_S):
            self._spare(victim, where)

    def _die_in_revoke(self, victim: Member) -> None:
        """Double the crew for the time, so that everybody has to give up partitions."""
        size = self._crew.size
        self._crew.resize(2 * size)
        if not hold(lambda: not victim.alive, FATE_DEADLINE_S):
            self._spare(victim, Point.IN_REVOKE)
        self._scale(size)

    def _spare(self, victim: Member, where: str) -> None:
        self._complain(f"{victim.log.name} did not come to {where}")
        victim.spare()

    def _term(self) -> None:
        self.wait_for_calm()
        victim = self._pick()
        held = self._held_by(victim)
        self._wait_a_moment()
        started = time.time()
        victim.send(signal.SIGTERM, 0)
        if not hold(lambda: not victim.alive, MAX_TERM_EXIT_S):
            self._complain(f"{victim.log.name} had not ended {MAX_TERM_EXIT_S:g} s after SIGTERM")
            victim.send(signal.SIGKILL, -signal.SIGKILL)
            return
        ended = time.time()
        self.tally.term_exits_s.append(ended - started)
        self._measure_takeover(victim, held, started, ended)

    def _term_twice(self) -> None:
        self._wait_for_owner()
        victim = self._pick()
        self._wait_a_moment()
        victim.send(signal.SIGTERM, 0, -signal.SIGTERM)
        # Not at once: two signals that wait together are one.
        time.sleep(0.1)
        started = time.time()
        victim.send(signal.SIGTERM)
        if not hold(lambda: not victim.alive, MAX_SECOND_TERM_EXIT_S):
            self._complain(f"{victim.log.name} had not ended {MAX_SECOND_TERM_EXIT_S:g} s after the second SIGTERM")
        self.tally.second_term_exits_s.append(time.time() - started)

    def _stop(self) -> None:
        """Freeze a worker between scoring and storing until all it held is somebody else's, then let it go on."""
        self.wait_for_calm()
        victim = self._pick()
        held = self._held_by(victim)
        victim.stand_still_at(Point.AFTER_SCORE)
        if not hold(lambda: not victim.alive or victim.stands_still, FATE_DEADLINE_S):
            self._complain(f"{victim.log.name} did not come to {Point.AFTER_SCORE}")
            return
        if not hold(lambda: not held & self._held_by(victim), REGAIN_DEADLINE_S):
            self._complain(f"nobody took over from {victim.log.name}, which stood still")
        victim.send(signal.SIGCONT)
        if hold(lambda: victim.events("fenced"), FENCED_DEADLINE_S):
            self.tally.stops_fenced += 1
        else:
            self._complain(f"{victim.log.name} stood still, lost its partitions and was not fenced")

    def _scale(self, size: int) -> None:
        # A worker that has not started up yet cannot leave in good order.
        self.wait_for_calm()
        leaving = self._crew.resize(size)
        hold(lambda: not any(member.alive for member in leaving), MAX_TERM_EXIT_S)
        for member in leaving:
            if member.status != 0:
                self._complain(f"{member.log.name} was scaled away and ended with {member.status}")

    # --- servers ---

    def _restart_broker(self, how: str) -> None:
        self._kafka.stop() if how == GENTLY else self._kafka.kill()
        self._outage()
        self._kafka.start()

    def _restart_database(self, how: str) -> None:
        self._database.stop("fast" if how == GENTLY else "immediate")
        self._outage()
        self._database.start()

    def _grow(self, count: int) -> None:
        """Add partitions, and wait until each has an owner."""
        self.wait_for_calm()
        started = time.monotonic()
        added = add_partitions(self._kafka, count)
        if not hold(lambda: added <= self._owners().keys(), MAX_NOTICE_S):
            self._complain(f"partitions that were added had no owner after {MAX_NOTICE_S:g} s")
        self.tally.notices_s.append(time.monotonic() - started)

    def _freeze(self, how: str) -> None:
        """Let the server stand still so long that every worker must give it up; one may be told to end meanwhile."""
        self.wait_for_calm()
        victim, faults = self._pick(), self._faults()
        with self._database.frozen():
            started = time.monotonic()
            if how == WITH_TERM:
                self._end_frozen(victim)
            time.sleep(max(0.0, started + FREEZE_S - time.monotonic()))
        thawed = time.monotonic()
        if self._faults() == faults:
            self._complain("no worker said that the database does not answer")
        if not self.wait_for_calm():
            self._complain(f"the workers had not gone on {CALM_DEADLINE_S:g} s after the database did")
        self.tally.thaws_s.append(time.monotonic() - thawed)

    def _end_frozen(self, victim: Member) -> None:
        time.sleep(self._chance.uniform(0, LONGEST_FROZEN_S))
        started = time.monotonic()
        victim.send(signal.SIGTERM, 0)
        if not hold(lambda: not victim.alive, MAX_TERM_EXIT_S):
            self._complain(f"{victim.log.name} had not ended {MAX_TERM_EXIT_S:g} s after SIGTERM, the database frozen")
            victim.send(signal.SIGKILL, -signal.SIGKILL)
        self.tally.frozen_exits_s.append(time.monotonic() - started)

    def _faults(self) -> int:
        """How often the workers have said that something is away."""
        return sum(one.get("event") == "transient_fault" for log in self._crew.logs() for one in log_events(log))

    def _restore(self) -> None:
        """Stop everybody and put the backup in place, as an operator does; the topic is ahead of the books then."""
        size = self._crew.size
        self._scale(0)
        settled, tasks = self._database.settled(), self._database.rows(checks.TASKS)
        steps = self._database.steps()
        self._database.restore()
        offsets = settled - self._database.settled()
        self.tally.lost_books.append(LostBooks(steps, {str(row["event_id"]) for row in tasks}, offsets))
        self._crew.resize(size)

    def _outage(self) -> None:
        time.sleep(self._chance.uniform(0.5, LONGEST_OUTAGE_S))

    # --- looking ---

    def _pick(self) -> Member:
        """One of those that hold a partition, or any if none does."""
        members = self._crew.members()
        owners = self._owners().values()
        return self._chance.choice([one for one in members if any(map(one.is_owner, owners))] or members)

    def _is_calm(self, since: datetime) -> bool:
        members, owners = self._crew.members(), self._owners().values()
        at_work = self._at_work(since)
        return all(any(one.is_owner(owner) for one in members) for owner in owners) and all(
            any(map(one.is_owner, at_work)) for one in members
        )

    def _at_work(self, since: datetime) -> list[str]:
        """The owners that have taken two steps."""
        steps = "SELECT owner FROM soak_steps WHERE at > %s AND to_offset > from_offset GROUP BY 1 HAVING count(*) > 1"
        try:
            return [row["owner"] for row in self._database.rows(steps, since)]
        except psycopg.OperationalError:
            return []

    def _wait_for_owner(self) -> None:
        """Wait until one of the workers that run holds a partition."""
        hold(lambda: any(self._held_by(one) for one in self._crew.members()), CALM_DEADLINE_S)

    def _wait_a_moment(self) -> None:
        """Come at any moment of a worker's work, which is hardly ever outside a batch while there is a backlog."""
        time.sleep(self._chance.uniform(0, LONGEST_PAUSE_S))

    def _held_by(self, member: Member) -> set[int]:
        return {partition for partition, owner in self._owners().items() if member.is_owner(owner)}

    def _owners(self) -> dict[int, str]:
        try:
            return self._database.owners()
        except psycopg.OperationalError:
            return {}

    def _measure_takeover(self, member: Member, held: set[int], asked: float, ended: float) -> None:
        """The seconds from the end of a worker until the last of its partitions has its next owner."""
        hold(lambda: not held & self._held_by(member), 3 * MAX_TAKEOVER_S)
        since = datetime.fromtimestamp(asked, UTC)
        claimed = self._database.rows(
            "SELECT partition, min(at) AS at FROM soak_steps WHERE NOT starts_with(owner, %s) AND at > %s GROUP BY 1",
            member.name,
            since,
        )
        claims = {row["partition"]: row["at"].timestamp() - ended for row in claimed}
        seconds = max((max(claims.get(partition, 3 * MAX_TAKEOVER_S), 0.0) for partition in held), default=0.0)
        self.tally.takeovers_s.append(seconds)
        if seconds > MAX_TAKEOVER_S:
            self._complain(f"the partitions of {member.log.name} were taken over {seconds:.1f} s after its end")

    def _complain(self, what: str) -> None:
        self._journal.note("wrong", what=what)
        self.tally.wrong.append(what)


def deal_all(chaos: Chaos, steps: Sequence[Step], progress: Callable[[], float], in_time: Callable[[], bool]) -> None:
    """Deal the blows at even distances of ``progress``, the settled share of all messages, as long as there is time."""
    for number, step in enumerate(steps):
        due = (number + 0.5) / (len(steps) + 1)
        while progress() < due and in_time():
            time.sleep(LOOK_S)
        if in_time():
            chaos.deal(step)
