"""The store: everything the worker asks of PostgreSQL. Each call is one transaction on a pooled connection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Self

from sqlalchemy import Engine

from gasp_core.grounding import AnswerGrounding
from gasp_core.identity import ScorerIdentity
from worker.claims import Claim, Position
from worker.judge import Threshold
from worker.settlement import Advance, Outcome, Settled, Settlement
from worker.store import interactions, jobs, offsets, readback, revisions, scorers, settle, status, thresholds
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

    def retry_job(self, job: jobs.AttributionJob, error: str, run_after_s: float) -> bool:
        """Put the job back, to be tried again after ``run_after_s`` seconds. False if the lease was lost."""
        with transaction(self._engine) as connection:
            return jobs.retry_job(connection, job, error, run_after_s)

    def fail_job(self, job: jobs.AttributionJob, error: str) -> bool:
        """Record the final failure; ``error`` must hold no message text. False if the lease was lost."""
        with transaction(self._engine) as connection:
            return jobs.fail_job(connection, job, error)

    def reap_leases(self) -> int:
        """Put jobs with an expired lease back in the queue, with their attempts; return how many."""
        with transaction(self._engine) as connection:
            return jobs.reap_leases(connection)

    def backlog(self) -> jobs.Backlog:
        """How many attribution jobs wait, run, have failed and are done."""
        with transaction(self._engine) as connection:
            return jobs.backlog(connection)

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
