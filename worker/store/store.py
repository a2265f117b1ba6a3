"""The store: everything the worker asks of PostgreSQL. Each call is one transaction on a pooled connection."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Self

from sqlalchemy import Engine

from gasp_core.grounding import AnswerGrounding
from gasp_core.identity import ScorerIdentity
from schemas.review_label import ReviewLabel
from schemas.review_task import ReviewTask
from worker.rules.agreement import Vote
from worker.rules.allowance import Allowance, UsualDay
from worker.rules.calibration.labels import LabelledSentence, Population
from worker.rules.claims import Claim, Position
from worker.rules.label_settlement import LabelSettlement
from worker.rules.opinion import Opinion
from worker.rules.policy import ReviewPolicy
from worker.rules.settlement import Advance, Outcome, Settled, Settlement
from worker.rules.verdict import Threshold
from worker.store import (
    attribution_jobs,
    calibration_runs,
    evidence,
    interactions,
    job_runs,
    label_settle,
    label_votes,
    labels,
    leases,
    offsets,
    opinions,
    outbox,
    paces,
    policies,
    preview,
    readback,
    report,
    rescoring,
    retention,
    revisions,
    scorers,
    settle,
    status,
    task_contents,
    thresholds,
    weeks,
)
from worker.store.engine import discard_connections, open_engine, transact, transaction


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
        discard_connections(self._engine)

    # --- scorers and thresholds ---

    def register_scorer(self, identity: ScorerIdentity) -> int:
        """The id of the identity, registered now if it never was."""
        return transact(self._engine, lambda connection: scorers.register_scorer(connection, identity))

    def ensure_default_threshold(self, scorer_id: int, flag_below: float, attribute_below: float, note: str) -> None:
        """Seed the first default version, active; nothing happens if the scorer has a default already."""
        with transaction(self._engine) as connection:
            thresholds.ensure_default_threshold(
                connection, scorer_id, flag_below=flag_below, attribute_below=attribute_below, note=note
            )

    def active_thresholds(self, scorer_id: int) -> dict[str | None, Threshold]:
        """The threshold in force per app; the key None is the default."""
        with transaction(self._engine) as connection:
            return thresholds.active_thresholds(connection, scorer_id)

    def threshold_versions(self) -> tuple[thresholds.Version, ...]:
        """Every threshold version of every app and scorer, the defaults first and old before new."""
        with transaction(self._engine) as connection:
            return thresholds.versions(connection)

    def threshold_activations(self) -> tuple[thresholds.Activation, ...]:
        """Which version came into force when, and by whom, old before new."""
        with transaction(self._engine) as connection:
            return thresholds.activations(connection)

    def last_activation(self, app: str | None, scorer_id: int) -> thresholds.Activation | None:
        """The last change of which version of the app's own (None: of the default) is in force."""
        with transaction(self._engine) as connection:
            return thresholds.last_activation(connection, app, scorer_id)

    def add_threshold(self, proposal: thresholds.Proposal) -> thresholds.Version:
        """Store a version that is not in force yet."""
        return transact(self._engine, lambda connection: thresholds.add_version(connection, proposal))

    def set_threshold(self, proposal: thresholds.Proposal, by: str) -> thresholds.Version:
        """Store a version by hand and put it in force; ``by`` names the person."""
        return transact(self._engine, lambda connection: thresholds.set_by_hand(connection, proposal, by))

    def activate_threshold(self, threshold_id: int, by: str) -> thresholds.Version | None:
        """Put a version in force by hand; None if there is no such version. Running workers judge by it at once."""
        return transact(
            self._engine, lambda connection: thresholds.activate(connection, threshold_id, by, thresholds.MANUAL)
        )

    def roll_back_threshold(self, app: str | None, scorer_id: int, by: str) -> thresholds.Rollback | None:
        """Undo the app's (None: the default's) last activation that was not undone yet.

        An app whose first own version is undone follows the default again. None, with nothing written, if the app has
        no version of its own in force, or if the default in force is the first.
        """
        return transact(self._engine, lambda connection: thresholds.roll_back(connection, app, scorer_id, by))

    def preview_threshold(self, app: str | None, scorer_id: int, flag_below: float) -> preview.Preview:
        """What a bound would change of last week's sentences of the app (None: of those with the default)."""
        with transaction(self._engine) as connection:
            return preview.preview(connection, app, scorer_id, flag_below)

    # --- recalibration ---

    def scorers_at_work(self) -> tuple[int, ...]:
        """The ids of the scorers that gave a verdict in the last seven days."""
        with transaction(self._engine) as connection:
            return evidence.scorers_at_work(connection)

    def labelled_sentences(self, scorer_id: int) -> list[tuple[str, LabelledSentence]]:
        """What people agreed on in the last year, with its app and the scorer's own score, newest first.

        At most 50,000 sentences, and only those with a known selection probability.
        """
        with transaction(self._engine) as connection:
            return evidence.labelled_sentences(connection, scorer_id)

    def population(self, apps: Sequence[str], scorer_id: int, until: datetime | None = None) -> Population:
        """The scores of the apps' answers of the 28 days before ``until`` (None: now), or of a random part of them."""
        with transaction(self._engine) as connection:
            return evidence.population(connection, apps, scorer_id, until=until)

    def book_calibration(
        self, run: calibration_runs.CalibrationRun, proposal: thresholds.Proposal | None
    ) -> thresholds.Version | None:
        """Enter a recalibration and, in the same transaction, put the proposal in force; return its version.

        None if there is no proposal, or if another version came into force meanwhile; the run then says so.
        """
        return transact(self._engine, lambda connection: calibration_runs.book(connection, run, proposal))

    def calibration_counts(self) -> dict[tuple[str, str], int]:
        """The recalibrations of the last seven days by outcome and reason."""
        with transaction(self._engine) as connection:
            return calibration_runs.counts(connection)

    # --- inline work ---

    def positions(self, topic: str) -> dict[int, int]:
        """The next offset of each partition of the topic that has begun."""
        with transaction(self._engine) as connection:
            return offsets.positions(connection, topic)

    def claim_partition(self, claim: Claim) -> Position | None:
        """Make the claimant the owner and say where it goes on; None if the owner is of a later generation.

        Messages that are gone are skipped and entered as lost.
        """
        with transaction(self._engine) as connection:
            return offsets.claim_partition(connection, claim)

    def known(self, scorer_id: int, keys: Sequence[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
        """Those of the (app, interaction id, content hash in hexadecimal) that this scorer has judged already."""
        with transaction(self._engine) as connection:
            return interactions.known(connection, scorer_id, keys)

    def settle(self, scorer_id: int, settlements: Sequence[Settlement], advances: Sequence[Advance]) -> Settled:
        """Book a batch in one transaction, with a review task for each new verdict that has a selection.

        The settlements of a partition that does not stand at its advance's ``expected`` are left out, and the
        partition is named in ``fenced``. Content that has its verdict already is booked as a duplicate. A record that
        was booked before is not booked or counted again. Raises ValueError for a batch that makes no sense: a
        settlement whose partition does not advance beyond it, a grounding without a verdict.
        """
        settle.check_batch(settlements, advances)
        batch = [revisions.keyed(settlement) for settlement in settlements]
        return transact(self._engine, lambda connection: settle.settle(connection, scorer_id, batch, advances))

    # --- what people are asked about ---

    def allowances(self, scorer_id: int, apps: Sequence[str]) -> dict[str, Allowance]:
        """What each of the apps may still ask about today (UTC) under this scorer."""
        with transaction(self._engine) as connection:
            return paces.allowances(connection, scorer_id, apps)

    def review_policies(self) -> tuple[ReviewPolicy, ...]:
        """The policies that were set, that of every other app first."""
        with transaction(self._engine) as connection:
            return policies.policies(connection)

    def review_policy(self, app: str | None) -> ReviewPolicy:
        """The policy that holds for the app: its own, that of every other app, or the built-in one."""
        with transaction(self._engine) as connection:
            return policies.policy_in_force(connection, app)

    def set_review_policy(self, policy: ReviewPolicy) -> None:
        """Set or change an app's policy. It holds from the next batch on."""
        with transaction(self._engine) as connection:
            policies.set_policy(connection, policy)

    def clear_review_policy(self, app: str | None) -> bool:
        """Let the app follow the policy of every other app again, and those (None) the built-in one.

        False if it had none of its own.
        """
        with transaction(self._engine) as connection:
            return policies.clear_policy(connection, app)

    def review_traffic(self, app: str) -> tuple[paces.Traffic, ...]:
        """The app's sentences a day under each scorer that has judged answers of the last week."""
        with transaction(self._engine) as connection:
            return paces.traffic(connection, app)

    def recent_scores(self, app: str, scorer_id: int, *, limit: int) -> list[float]:
        """The scores of at most ``limit`` of the app's newest scored sentences of the last week."""
        with transaction(self._engine) as connection:
            return paces.recent_scores(connection, app, scorer_id, limit)

    def set_review_pace(self, app: str, scorer_id: int, usual: UsualDay) -> None:
        """Enter or change what a usual day of the app holds under a scorer."""
        with transaction(self._engine) as connection:
            paces.set_pace(connection, app, scorer_id, usual)

    # --- labels ---

    def unknown_sentences(self, found: Sequence[ReviewLabel]) -> set[int]:
        """The positions of the labels that are about no sentence with a score, of an answer that is known."""
        with transaction(self._engine) as connection:
            return labels.unknown_sentences(connection, found)

    def add_labels(self, found: Sequence[ReviewLabel], source: labels.LabelSource) -> list[labels.LabelOutcome]:
        """Store labels in their order and bring their tasks up to date, in one transaction; one outcome for each."""
        return transact(self._engine, lambda connection: labels.add_labels(connection, found, source))

    def rehearse_labels(self, found: Sequence[ReviewLabel]) -> list[labels.LabelOutcome]:
        """What ``add_labels`` would make of them; nothing is kept."""
        return transact(self._engine, lambda connection: labels.rehearse_labels(connection, found))

    def settle_labels(self, settlements: Sequence[LabelSettlement], advances: Sequence[Advance]) -> Settled:
        """Book a batch of the label topic in one transaction, as ``settle`` does one of the interactions'.

        Whether the sentences exist must have been asked before (``unknown_sentences``). A record of which nothing was
        new is booked as skipped.
        """
        settle.check_batch(settlements, advances)
        return transact(self._engine, lambda connection: label_settle.settle_labels(connection, settlements, advances))

    def settle_early_labels(self) -> int:
        """Settle the open tasks of the last day whose labels came before them; return how many were looked at."""
        return transact(self._engine, labels.settle_early_labels)

    def votes(self, app: str | None = None) -> list[Vote]:
        """What each reviewer said last of each sentence, of one app or of all."""
        with transaction(self._engine) as connection:
            return label_votes.votes(connection, app)

    # --- attribution jobs ---

    def claim_job(
        self, owner: str, scorer_id: int, lease_s: float, max_attempts: int
    ) -> attribution_jobs.AttributionJob | None:
        """Lease this scorer's due job with the lowest gap for ``lease_s`` seconds, or return None if none is due.

        A job that was started ``max_attempts`` times without an end is failed instead.
        """
        with transaction(self._engine) as connection:
            return attribution_jobs.claim_job(connection, owner, scorer_id, lease_s=lease_s, max_attempts=max_attempts)

    def finish_job(self, job: attribution_jobs.AttributionJob, grounding: AnswerGrounding) -> bool:
        """Store the attributions. False, with nothing written, if the lease was lost."""
        with transaction(self._engine) as connection:
            return attribution_jobs.finish_job(connection, job, grounding)

    def open_backlog(self) -> leases.Backlog:
        """How many attribution jobs wait, run and have failed; quick, however many are done."""
        with transaction(self._engine) as connection:
            return leases.open_backlog(connection, attribution_jobs.AttributionJob.table)

    def backlog(self) -> leases.Backlog:
        """How many attribution jobs wait, run, have failed and are done."""
        with transaction(self._engine) as connection:
            return leases.backlog(connection, attribution_jobs.AttributionJob.table)

    # --- re-scoring jobs ---

    def known_scorers(self) -> tuple[scorers.KnownScorer, ...]:
        """Every scorer identity that a worker has run with, in the order of registration."""
        with transaction(self._engine) as connection:
            return scorers.known_scorers(connection)

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

    # --- second opinions ---

    def queue_opinions(self, scorer_id: int, verifier: str, *, daily: int, limit: int) -> int:
        """Queue the lowest flagged sentences of lately attributed answers that the verifier was never asked about.

        At most ``limit``, and at most ``daily`` on one day (UTC); returns how many.
        """
        return transact(
            self._engine,
            lambda connection: opinions.queue_opinions(connection, scorer_id, verifier, daily=daily, limit=limit),
        )

    def claim_opinion(self, owner: str, verifier: str, lease_s: float, max_attempts: int) -> opinions.OpinionJob | None:
        """Lease the verifier's due sentence with the lowest score for ``lease_s`` seconds; None if none is due.

        One that was started ``max_attempts`` times without an end is failed instead.
        """
        with transaction(self._engine) as connection:
            return opinions.claim_opinion(connection, owner, verifier, lease_s=lease_s, max_attempts=max_attempts)

    def finish_opinion(self, job: opinions.OpinionJob, opinion: Opinion) -> bool:
        """Store the opinion and close the job. False, with nothing written, if the lease was lost."""
        with transaction(self._engine) as connection:
            return opinions.finish_opinion(connection, job, opinion)

    # --- jobs of any kind ---

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
        kinds: tuple[type[leases.Job], ...] = (
            attribution_jobs.AttributionJob,
            rescoring.RescoreJob,
            outbox.OutboxEvent,
            opinions.OpinionJob,
        )
        with transaction(self._engine) as connection:
            return sum(leases.reap(connection, kind.table) for kind in kinds)

    # --- review tasks, out ---

    def claim_outbox(self, take: outbox.Take) -> tuple[outbox.OutboxEvent, ...]:
        """Lease the oldest events that are due on a channel, with their tasks; none if none is due.

        An event that was started ``max_attempts`` times without an end is failed instead.
        """
        with transaction(self._engine) as connection:
            return outbox.claim_events(connection, take)

    def note_sending(
        self, events: Sequence[outbox.OutboxEvent], ends: outbox.TopicEnds, lease_s: float
    ) -> tuple[outbox.OutboxEvent, ...]:
        """Note where a topic ended before the events are sent, and renew their leases; those that are still leased."""
        with transaction(self._engine) as connection:
            return outbox.note_sending(connection, events, ends, lease_s)

    def finish_outbox(self, events: Sequence[outbox.OutboxEvent]) -> int:
        """Close the events in one transaction; return how many were still leased."""
        with transaction(self._engine) as connection:
            return outbox.finish_events(connection, events)

    def outbox_backlogs(self) -> dict[str, leases.Backlog]:
        """How many events of each channel wait, run and have failed; quick, however many are done."""
        with transaction(self._engine) as connection:
            return outbox.open_backlogs(connection)

    def count_review_tasks(self, wanted: task_contents.TaskFilter) -> int:
        """How many review tasks there are."""
        with transaction(self._engine) as connection:
            return task_contents.count_tasks(connection, wanted)

    def review_tasks(self, wanted: task_contents.TaskFilter, *, page: int = 50) -> Iterator[ReviewTask]:
        """The tasks in the order of creation, without those whose answer was deleted. Each page is a transaction."""
        after: int | None = 0
        while after is not None:
            with transaction(self._engine) as connection:
                after, tasks = task_contents.task_page(connection, wanted, after, page)
            yield from tasks

    # --- scheduled jobs ---

    def claim_run(self, job: str, scheduled_for: datetime, owner: str) -> bool:
        """Whether this due time of the job is the caller's to run; false if somebody has entered it already."""
        with transaction(self._engine) as connection:
            return job_runs.claim_run(connection, job, scheduled_for, owner)

    def end_run(self, job: str, scheduled_for: datetime, *, failed: bool, detail: str | None) -> None:
        """Book how the run of a due time ended; ``detail`` must hold no message text."""
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

    def newest_scorer(self, app: str) -> int | None:
        """The scorer that gave the app's newest answer its last verdict; None if the app has none."""
        with transaction(self._engine) as connection:
            return report.newest_scorer(connection, app)

    def report(self, subject: report.Subject) -> report.Found:
        """What a report shows of an app and scorer in a period, in the state of one moment."""
        with transaction(self._engine) as connection:
            return report.read(connection, subject)

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
