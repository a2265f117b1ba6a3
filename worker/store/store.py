"""The store: everything the worker asks of PostgreSQL. Each call is one transaction on a pooled connection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Self

from sqlalchemy import Engine

from gasp_core.grounding import AnswerGrounding
from gasp_core.identity import ScorerIdentity
from worker.claims import Claim, Position
from worker.judge import Threshold
from worker.settlement import Advance, Outcome, Settled, Settlement
from worker.store import (
    interactions,
    job_runs,
    jobs,
    leases,
    offsets,
    readback,
    rescoring,
    retention,
    revisions,
    scorers,
    settle,
    status,
    thresholds,
    weeks,
)
from worker.store.engine import open_engine, transact, transaction


class Store:
    """A pool of connections to one database; safe to use from several threads.

    Every method raises StoreError and nothing of the driver's, and then nothing of that call has been written.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the idle connections. Those in use close when their call ends."""
        self._engine.dispose()

    # --- scorers and thresholds ---

    def register_scorer(self, identity: ScorerIdentity) -> int:
        """The id of the identity, registered now if it never was."""
        return transact(self._engine, lambda connection: scorers.register_scorer(connection, identity))

    def ensure_default_threshold(self, scorer_id: int, flag_below: float, attribute_below: float, note: str) -> None:
        """Seed the first default version, in nats, active; nothing happens if the scorer has a default already."""
        with transaction(self._engine) as connection:
            thresholds.ensure_default_threshold(
                connection, scorer_id, flag_below=flag_below, attribute_below=attribute_below, note=note
            )

    def active_thresholds(self, scorer_id: int) -> dict[str | None, Threshold]:
        """The threshold in force per app; the key None is the default."""
        with transaction(self._engine) as connection:
            return thresholds.active_thresholds(connection, scorer_id)

    # --- inline work ---

    def positions(self, topic: str) -> dict[int, int]:
        """The next offset of each partition of the topic that has begun."""
        with transaction(self._engine) as connection:
            return offsets.positions(connection, topic)

    def claim_partition(self, claim: Claim) -> Position | None:
        """Make the claimant the owner and say where it goes on; None if the owner is of a later generation.

        Messages that are gone are skipped and entered as a gap.
        """
        with transaction(self._engine) as connection:
            return offsets.claim_partition(connection, claim)

    def known(self, scorer_id: int, keys: Sequence[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
        """Those of the (app, interaction id, content hash in hexadecimal) that this scorer has judged already."""
        with transaction(self._engine) as connection:
            return interactions.known(connection, scorer_id, keys)

    def settle(self, scorer_id: int, settlements: Sequence[Settlement], advances: Sequence[Advance]) -> Settled:
        """Book a batch in one transaction.

        The settlements of a partition that does not stand at its advance's ``expected`` are left out, and the
        partition is named in ``fenced``. Content that has its verdict already is booked as a duplicate. A record that
        was booked before is not booked or counted again. Raises ValueError for a batch that makes no sense: a
        settlement whose partition does not advance beyond it, a grounding without a verdict.
        """
        settle.check_batch(settlements, advances)
        batch = [revisions.keyed(settlement) for settlement in settlements]
        return transact(self._engine, lambda connection: settle.settle(connection, scorer_id, batch, advances))

    # --- attribution jobs ---

    def claim_job(self, owner: str, scorer_id: int, lease_s: float, max_attempts: int) -> jobs.AttributionJob | None:
        """Lease this scorer's due job with the lowest gap for ``lease_s`` seconds, or return None if none is due.

        A job that was started ``max_attempts`` times without an end is failed instead.
        """
        with transaction(self._engine) as connection:
            return jobs.claim_job(connection, owner, scorer_id, lease_s=lease_s, max_attempts=max_attempts)

    def finish_job(self, job: jobs.AttributionJob, grounding: AnswerGrounding) -> bool:
        """Store the attributions. False, with nothing written, if the lease was lost."""
        with transaction(self._engine) as connection:
            return jobs.finish_job(connection, job, grounding)

    def open_backlog(self) -> leases.Backlog:
        """How many attribution jobs wait, run and have failed; quick, however many are done."""
        with transaction(self._engine) as connection:
            return leases.open_backlog(connection, jobs.AttributionJob.table)

    def backlog(self) -> leases.Backlog:
        """How many attribution jobs wait, run, have failed and are done."""
        with transaction(self._engine) as connection:
            return leases.backlog(connection, jobs.AttributionJob.table)

    # --- re-scoring jobs ---

    def known_scorers(self) -> tuple[rescoring.KnownScorer, ...]:
        """Every scorer identity that a worker has run with, in the order of registration."""
        with transaction(self._engine) as connection:
            return rescoring.known_scorers(connection)

    def queue_rescoring(
        self,
        scorer_id: int,
        history: rescoring.History,
        before: rescoring.Place | None,
        *,
        limit: int,
        only_count: bool = False,
    ) -> rescoring.Portion:
        """Queue those of the next ``limit`` interactions that lack the scorer's verdict, newest first.

        ``before`` is the end of the portion before, None for the first. ``only_count`` writes nothing.
        """
        return transact(
            self._engine,
            lambda connection: rescoring.queue_portion(
                connection, scorer_id, history, before, limit=limit, only_count=only_count
            ),
        )

    def cancel_rescoring(self, scorer_id: int, *, limit: int) -> int:
        """Take back at most ``limit`` of the scorer's waiting jobs; return how many it were, 0 if none is left."""
        with transaction(self._engine) as connection:
            return rescoring.cancel_portion(connection, scorer_id, limit=limit)

    def claim_rescoring(
        self, owner: str, scorer_id: int, *, limit: int, lease_s: float, max_attempts: int
    ) -> tuple[rescoring.RescoreJob, ...]:
        """Lease at most ``limit`` of this scorer's due jobs for ``lease_s`` seconds; none if none is due.

        A job that was started ``max_attempts`` times without an end is failed instead.
        """
        with transaction(self._engine) as connection:
            return rescoring.claim_jobs(
                connection, owner, scorer_id, limit=limit, lease_s=lease_s, max_attempts=max_attempts
            )

    def finish_rescoring(self, scorer_id: int, judged: Sequence[tuple[rescoring.RescoreJob, revisions.Judged]]) -> int:
        """Store the verdicts and close the jobs in one transaction; return how many verdicts were stored.

        Nothing is written for a job whose lease was lost; a verdict that is there already stays.
        """
        return transact(self._engine, lambda connection: rescoring.finish_jobs(connection, scorer_id, judged))

    def rescore_backlog(self) -> leases.Backlog:
        """How many re-scoring jobs wait, run, have failed and are done."""
        with transaction(self._engine) as connection:
            return leases.backlog(connection, rescoring.RescoreJob.table)

    # --- jobs of either kind ---

    def retry_job(self, job: leases.Job, error: str, run_after_s: float) -> bool:
        """Put the job back, to be tried again after ``run_after_s`` seconds. False if the lease was lost."""
        with transaction(self._engine) as connection:
            return leases.retry(connection, job, error, run_after_s)

    def release_job(self, job: leases.Job) -> bool:
        """Put the job back as if it had not been claimed. False if the lease was lost."""
        with transaction(self._engine) as connection:
            return leases.release(connection, job)

    def fail_job(self, job: leases.Job, error: str) -> bool:
        """Record the final failure; ``error`` must hold no message text. False if the lease was lost."""
        with transaction(self._engine) as connection:
            return leases.fail(connection, job, error)

    def reap_leases(self) -> int:
        """Put jobs with an expired lease back in the queue, with their attempts; return how many."""
        tables = (jobs.AttributionJob.table, rescoring.RescoreJob.table)
        with transaction(self._engine) as connection:
            return sum(leases.reap(connection, table) for table in tables)

    # --- scheduled jobs ---

    def claim_run(self, job: str, scheduled_for: datetime, owner: str) -> bool:
        """Whether the tick of the job is the caller's to run; false if somebody has entered it already."""
        with transaction(self._engine) as connection:
            return job_runs.claim_run(connection, job, scheduled_for, owner)

    def end_run(self, job: str, scheduled_for: datetime, *, failed: bool, detail: str | None) -> None:
        """Book how the run of a tick ended; ``detail`` must hold no message text."""
        with transaction(self._engine) as connection:
            job_runs.end_run(connection, job, scheduled_for, "failed" if failed else "done", detail)

    def prune_runs(self, keep_days: int) -> int:
        """Forget runs from before ``keep_days`` ago, but never a job's newest; return how many."""
        with transaction(self._engine) as connection:
            return job_runs.prune_runs(connection, keep_days)

    # --- weeks and retention ---

    def ensure_weeks(self, ahead_days: int = weeks.AHEAD_DAYS) -> int:
        """Make what is missing of the weekly tables from now to so many days ahead; return how many were made.

        Raises StoreBusy if a long transaction is in the way.
        """
        return transact(self._engine, lambda connection: weeks.ensure_weeks(connection, ahead_days))

    def drop_weeks(self, table: str, before: datetime) -> int:
        """Drop those weeks of one of the WEEKLY_TABLES that end before a time; return how many.

        Raises StoreBusy if somebody reads or writes the table for too long just now.
        """
        with transaction(self._engine) as connection:
            return weeks.drop_weeks(connection, table, before)

    def retention_periods(self) -> tuple[retention.Period, ...]:
        """The periods that were set, that of every other app first."""
        with transaction(self._engine) as connection:
            return retention.periods(connection)

    def set_retention(self, period: retention.Period) -> None:
        """Set or change an app's period. It holds at once."""
        with transaction(self._engine) as connection:
            retention.set_period(connection, period)

    def clear_retention(self, app: str) -> bool:
        """Let the app follow the period of every other app again. False if it had none of its own."""
        with transaction(self._engine) as connection:
            return retention.clear_period(connection, app)

    def retention_cutoff(self) -> datetime | None:
        """The time before which nothing is kept, whatever its app; None if some app's data is kept for ever."""
        with transaction(self._engine) as connection:
            return retention.cutoff_of_all(connection)

    def overdue(self) -> retention.Overdue:
        """Count what retention would remove now."""
        with transaction(self._engine) as connection:
            return retention.overdue(connection)

    def apps(self) -> list[str]:
        """Every app that has interactions."""
        with transaction(self._engine) as connection:
            return retention.apps(connection)

    def delete_open_jobs(self, before: datetime, limit: int) -> int:
        """Remove at most ``limit`` jobs of each kind whose interactions were stored before a time; return how many."""
        return transact(self._engine, lambda connection: retention.delete_open_jobs(connection, before, limit))

    def delete_interactions(self, app: str, limit: int) -> int:
        """Remove at most ``limit`` interactions that are older than the app's period, with all that is theirs."""
        return transact(self._engine, lambda connection: retention.delete_interactions(connection, app, limit))

    def delete_ledger(self, topic: str, partition: int, before: datetime, limit: int) -> int:
        """Remove at most ``limit`` rows of a partition that were booked before a time and lie behind its position."""
        return transact(
            self._engine, lambda connection: retention.delete_ledger(connection, topic, partition, before, limit)
        )

    def delete_gaps(self, before: datetime) -> int:
        """Remove the offset gaps that were noticed before a time; return how many."""
        with transaction(self._engine) as connection:
            return retention.delete_gaps(connection, before)

    # --- status and reading back ---

    def partition_statuses(self) -> tuple[status.PartitionStatus, ...]:
        """How far each partition is."""
        with transaction(self._engine) as connection:
            return status.partition_statuses(connection)

    def outcome_counts(self) -> dict[tuple[Outcome, str | None], int]:
        """The ledger, counted by outcome and reason."""
        with transaction(self._engine) as connection:
            return status.outcome_counts(connection)

    def sentence_rows(
        self,
        *,
        app: str | None = None,
        interaction_ids: Collection[str] | None = None,
        scorer_id: int | None = None,
    ) -> Iterator[readback.SentenceRow]:
        """Current sentences in the order in which their answers were stored; a condition left out selects everything.

        Holds a connection until the iterator is exhausted or closed.
        """
        with transaction(self._engine) as connection:
            yield from readback.sentence_rows(connection, app=app, interaction_ids=interaction_ids, scorer_id=scorer_id)

    def ping(self) -> str:
        """Ask the server for its version, such as ``18.6``; raises StoreError if it cannot be reached."""
        with transaction(self._engine) as connection:
            return status.server_version(connection)

    def schema_revision(self) -> str | None:
        """The revision that the database was migrated to, or None if it never was."""
        with transaction(self._engine) as connection:
            return status.schema_revision(connection)


def open_store(url: str, *, application_name: str) -> Store:
    """Open a store on a PostgreSQL URL. Connects at the first call; ``ping`` is one.

    Raises StoreNotReady, without quoting it, for a URL that is none.
    """
    return Store(open_engine(url, application_name=application_name))
