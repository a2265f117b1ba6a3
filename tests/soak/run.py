"""One soak: servers, load, workers and blows, until the backlog is drained; then the checks."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.apache_kafka import ApacheKafka, apache_kafka
from tests.fixtures.bad_inputs import MAX_MESSAGE_BYTES
from tests.pgbouncer import pgbouncer
from tests.soak import checks, report
from tests.soak.chaos import Chaos, deal_all
from tests.soak.checks import Findings
from tests.soak.crew import Crew, hold
from tests.soak.database import Database, database
from tests.soak.expectation import expect
from tests.soak.journal import Journal
from tests.soak.load import Load
from tests.soak.messages import aborted, messages
from tests.soak.progress import Progress
from tests.soak.sabotage import Sabotage
from tests.soak.schedule import Blow, Wanted, schedule
from tests.soak.topic import DEAD_LETTER_TOPIC, GROUP, TASKS_TOPIC, TOPIC, committed, create_topics, ends, records

CLAIM_DEADLINE_S = 90.0
COMMIT_DEADLINE_S = 20.0
LEAVE_DEADLINE_S = 60.0
# Connections of PgBouncer to the server, fewer than the workers have to it.
POOL = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What a soak is to be.

    At least ``messages`` are sent, and more while blows fall. ``minutes`` is the time after which it is given up,
    ``delay_s`` a batch's model time. With ``pooled`` the workers reach the database through PgBouncer.
    """

    messages: int
    partitions: int
    wanted: Wanted
    seed: int
    minutes: float
    delay_s: float
    batch_messages: int
    backlog: int
    session_timeout_s: float
    sabotage: Sabotage
    pooled: bool = False


class Soak:
    """A run of a plan, whose files are in ``directory``."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.directory = directory
        self.steps = schedule(plan.wanted, plan.seed)
        self.findings = Findings()
        self.figures: report.Figures = {}
        self._committed: Mapping[int, int | None] = {}
        self._dealt = threading.Event()
        self._started_at = time.monotonic()

    def run(self) -> None:
        """Run it and check it.

        Raises KafkaCannotRun, KafkaFailedError, EmbeddedPostgresError or PgBouncerCannotRun.
        """
        with ExitStack() as stack:
            journal = Journal(self.directory / "events.jsonl")
            stack.callback(journal.close)
            kafka = stack.enter_context(apache_kafka())
            books = stack.enter_context(database(self.directory / "database"))
            create_topics(kafka, self.plan.partitions)
            url = stack.enter_context(pgbouncer(books.url, pool_size=POOL)) if self.plan.pooled else books.url
            crew = stack.enter_context(Crew(self.directory, self._environment(kafka, url), journal))
            chaos = Chaos(crew=crew, kafka=kafka, database=books, journal=journal, seed=self.plan.seed)
            progress = Progress(books, lambda settled: self._line(settled, load, crew, chaos))
            load = self._load(kafka, progress, journal)
            crew.resize(self.plan.wanted.workers[0])
            if not hold(lambda: len(books.owners()) == self.plan.partitions, CLAIM_DEADLINE_S):
                self.findings.wrong.append(f"not all partitions had an owner after {CLAIM_DEADLINE_S:g} s")
            with progress, load:
                self._work(crew, load, chaos, progress, books, kafka)
            self._check(crew, load, chaos, books, kafka)

    # --- the run ---

    def _work(
        self, crew: Crew, load: Load, chaos: Chaos, progress: Progress, books: Database, kafka: ApacheKafka
    ) -> None:
        deal_all(
            chaos,
            self.steps,
            progress=lambda: progress.settled / self.plan.messages,
            in_time=lambda: self._left_s() > 0,
        )
        self._dealt.set()
        if not hold(lambda: load.done and load.waiting <= 0 and _drained(books, kafka), self._left_s()):
            self.findings.wrong.append(f"the backlog was not settled after {self.plan.minutes:g} minutes")
        # While the workers run: who leaves says where it stands, which is too late for what scales them.
        hold(lambda: _committed(kafka) == ends(kafka), COMMIT_DEADLINE_S)
        self._committed = _committed(kafka)
        leaving = crew.resize(0)
        if not hold(lambda: not any(member.alive for member in leaving), LEAVE_DEADLINE_S):
            self.findings.wrong.append("workers did not leave at the end")

    def _left_s(self) -> float:
        return 60 * self.plan.minutes - self._seconds()

    def _seconds(self) -> float:
        return time.monotonic() - self._started_at

    def _line(self, settled: int, load: Load, crew: Crew, chaos: Chaos) -> str:
        blows = f"{sum(chaos.tally.done.values())} of {len(self.steps)}"
        counts = f"sent {load.sent}  settled {settled}  lag {load.waiting}"
        return f"{counts}  workers {len(crew.members())}  kills {chaos.tally.count(Blow.KILL)}  blows {blows}"

    # --- the parts ---

    def _load(self, kafka: ApacheKafka, progress: Progress, journal: Journal) -> Load:
        return Load(
            kafka.bootstrap,
            TOPIC,
            messages(self.plan.seed),
            aborted(),
            backlog=self.plan.backlog,
            settled=lambda: progress.settled,
            # Blows fall on workers that have something to do.
            enough=lambda sent: sent >= self.plan.messages and self._dealt.is_set(),
            journal=journal,
        )

    def _environment(self, kafka: ApacheKafka, database_url: str) -> dict[str, str]:
        settings = {
            "GASP_DATABASE_URL": database_url,
            "GASP_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
            "GASP_TOPIC": TOPIC,
            "GASP_DEAD_LETTER_TOPIC": DEAD_LETTER_TOPIC,
            "GASP_CONSUMER_GROUP": GROUP,
            # Partitions that are added must begin at their first message all the same.
            "GASP_FIRST_START": "latest",
            "GASP_REVIEW_TASKS_TOPIC": TASKS_TOPIC,
            "GASP_REVIEW_LABELS_TOPIC": "",
            "GASP_REVIEW_WAIT_S": 5,
            "GASP_MAX_MESSAGE_BYTES": MAX_MESSAGE_BYTES,
            "GASP_BATCH_MESSAGES": self.plan.batch_messages,
            "GASP_SESSION_TIMEOUT_S": self.plan.session_timeout_s,
            # A job of a worker that was killed comes back soon.
            "GASP_ATTRIBUTION_LEASE_S": 5,
            "GASP_LOG_LEVEL": "info",
            "GASP_DETECTOR": "gap",
            "SOAK_DELAY_S": self.plan.delay_s,
            "SOAK_BREAK": self.plan.sabotage.value,
        }
        return {name: str(value) for name, value in settings.items()}

    # --- the verdict ---

    def _check(self, crew: Crew, load: Load, chaos: Chaos, books: Database, kafka: ApacheKafka) -> None:
        expected = expect(records(kafka, TOPIC), load.messages, load.places, books.positions())
        ledger, interactions = books.rows(checks.LEDGER), books.rows(checks.INTERACTIONS)
        findings = self.findings
        checks.check_topic(findings, expected)
        checks.check_ledger(findings, ledger, expected)
        checks.check_interactions(findings, interactions, expected)
        checks.check_verdicts(
            findings,
            interactions,
            books.rows(checks.VERDICTS),
            books.rows(checks.SENTENCES),
            books.rows(checks.ATTRIBUTIONS),
            expected,
        )
        checks.check_letters(findings, records(kafka, DEAD_LETTER_TOPIC), expected, disturbed=bool(self.steps))
        lost = {event for one in chaos.tally.lost_books for event in one.events}
        tasks = books.rows(checks.TASKS)
        checks.check_tasks(findings, records(kafka, TASKS_TOPIC), tasks, interactions, lost)
        for one in chaos.tally.lost_books:
            checks.check_history(findings, one.steps, {})
        checks.check_history(findings, books.steps(), ends(kafka))
        checks.check_lag(findings, books.rows(checks.LAGS), self._committed, ends(kafka))
        checks.check_jobs(findings, books.rows(checks.JOB_RUNS), crew.skewed)
        findings.lost += findings.add("stretches booked as lost", books.rows(checks.LOST_OFFSETS))
        checks.check_silence(findings, crew.logs())
        findings.wrong += [*chaos.tally.wrong, *crew.unexpected]
        if load.fault is not None:
            findings.wrong.append(f"the load ended early: {type(load.fault).__name__}")
        self.figures = {
            "sent": len(load.messages),
            "read": len(expected.outcomes),
            **report.outcomes(ledger),
            **report.faults(findings),
            "transactions": load.committed,
            "aborted_transactions": load.aborted,
            "aborted_records": len(records(kafka, TOPIC, aborted=True)) - len(records(kafka, TOPIC)),
            "tasks": findings.tasks,
            "task_repeats": findings.task_repeats,
            "tasks_not_chosen_again": findings.tasks_not_chosen_again,
            "job_runs": findings.runs,
            "job_runs_of_skewed": findings.runs_of_skewed,
            "pooled": self.plan.pooled,
            "fenced_writes": report.fenced_writes(crew.logs()),
            **report.blows(chaos.tally, crew),
            "seconds": round(self._seconds(), 1),
            "seed": self.plan.seed,
            "break": self.plan.sabotage.value,
        }


def _drained(books: Database, kafka: ApacheKafka) -> bool:
    """Whether no offset, attribution and review task to tell is left; not as long as the database is away."""
    try:
        return books.positions() == ends(kafka) and books.open_jobs() == 0 and books.untold_tasks() == 0
    except psycopg.OperationalError:
        return False


def _committed(kafka: ApacheKafka) -> dict[int, int | None]:
    return committed(kafka, list(ends(kafka)))
