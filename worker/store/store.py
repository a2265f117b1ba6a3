"""The store: one pool of connections, and a repository for each thing that is asked of PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from worker.store.attribution_jobs import AttributionJobs
from worker.store.calibration_runs import CalibrationRuns
from worker.store.database import Database
from worker.store.disputes import Disputes
from worker.store.engine import open_engine
from worker.store.evidence import Evidence
from worker.store.exports import Exports
from worker.store.interactions import Interactions
from worker.store.job_runs import JobRuns
from worker.store.label_settlements import LabelSettlements
from worker.store.labelled_answers import LabelledAnswers
from worker.store.labels import Labels
from worker.store.leases import Leases
from worker.store.ledger import Ledger
from worker.store.offsets import Offsets
from worker.store.opinion_jobs import OpinionJobs
from worker.store.outbox import Outbox
from worker.store.policies import ReviewPolicies
from worker.store.preview import Previews
from worker.store.recent_scores import RecentScores
from worker.store.rejudging import Rejudging
from worker.store.replacement import Replacement
from worker.store.report import Reports
from worker.store.rescore_jobs import RescoreJobs
from worker.store.retention import Retention
from worker.store.retention_periods import RetentionPeriods
from worker.store.review_queue import ReviewQueue
from worker.store.review_tasks import ReviewTasks
from worker.store.sampling import Sampling
from worker.store.scorers import Scorers
from worker.store.sentences import Sentences
from worker.store.server import Server
from worker.store.session import endless
from worker.store.settlements import Settlements
from worker.store.stored_answers import StoredAnswers
from worker.store.thresholds import Thresholds
from worker.store.traces import Traces
from worker.store.votes import Votes
from worker.store.weekly_partitions import WeeklyPartitions


class Store:
    """The repositories on one database; safe to use from several threads. Who needs one of them takes that one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Batches of the topics, and where they stand.
        self.offsets = Offsets(database)
        self.settlements = Settlements(database)
        self.label_settlements = LabelSettlements(database)
        self.ledger = Ledger(database)
        self.traces = Traces(database)
        # Answers and what was found in them.
        self.interactions = Interactions(database)
        self.sentences = Sentences(database)
        self.scorers = Scorers(database)
        # Thresholds and what they are learned from.
        self.thresholds = Thresholds(database)
        self.previews = Previews(database)
        self.rejudging = Rejudging(database)
        self.evidence = Evidence(database)
        self.labelled_answers = LabelledAnswers(database)
        self.recent_scores = RecentScores(database)
        self.calibration_runs = CalibrationRuns(database)
        # Jobs that are leased.
        self.leases = Leases(database)
        self.attribution_jobs = AttributionJobs(database)
        self.rescore_jobs = RescoreJobs(database)
        self.opinion_jobs = OpinionJobs(database)
        self.replacement = Replacement(database)
        self.outbox = Outbox(database)
        self.exports = Exports(database)
        # Reviews.
        self.policies = ReviewPolicies(database)
        self.sampling = Sampling(database)
        self.review_tasks = ReviewTasks(database)
        self.review_queue = ReviewQueue(database)
        self.disputes = Disputes(database)
        self.stored_answers = StoredAnswers(database)
        self.labels = Labels(database)
        self.votes = Votes(database)
        # Maintenance of the database, and looks at it.
        self.job_runs = JobRuns(database)
        self.weekly_partitions = WeeklyPartitions(database)
        self.retention_periods = RetentionPeriods(database)
        self.retention = Retention(database)
        self.reports = Reports(database)
        self.server = Server(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections. Those in use close when their call ends."""
        self._database.close()


def open_store(url: str, *, application_name: str, left_s: Callable[[], float] = endless) -> Store:
    """Open a store on a PostgreSQL URL. Connects at the first call; ``server.ping`` is one.

    ``left_s`` says for how many seconds from now on a call may still take; what does not end in time raises
    StoreUnavailable. Raises StoreNotReady, without quoting it, for a URL that is none.
    """
    return Store(Database(open_engine(url, application_name=application_name, left_s=left_s)))
