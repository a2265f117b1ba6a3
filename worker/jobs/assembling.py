"""Assembling: a trace that is due becomes exchanges, which go the way of every other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain

import structlog

from schemas.decoding import Rejected, Result, Skipped, decode_exchange
from schemas.reject_reason import RejectReason
from schemas.skip_reason import SkipReason
from schemas.traces.assembly import Assembly, assemble
from schemas.traces.piece import Piece, uppermost_keys
from schemas.traces.step import Step
from worker.documents.documents import Lookup
from worker.errors import Stopped
from worker.ingest.dead_letters import DeadLetters, Form
from worker.ingest.ends import PartitionEnds
from worker.ingest.judging import MAX_ATTEMPTS, Found, Judging
from worker.jobs.leased import LeasedWork, LeasePolicy
from worker.rules.pieces import MAX_BYTES, MAX_STEPS, ClosedBy, StoredPiece, TracePolicy
from worker.rules.settlement import Origin, Outcome, Settlement, Source
from worker.runtime.metrics import Metrics, Stage
from worker.runtime.retry import RetryPolicy
from worker.store.errors import StoreRejected, StoreTimeout
from worker.store.leases import Leases
from worker.store.offsets import Offsets
from worker.store.traces import Closing, TraceJob, Traces

# A batch of messages that comes meanwhile waits for so many.
TRACES_AT_ONCE = 16
SURPLUS_EVERY_S = 1.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """A result of a trace, and the piece that holds the uppermost step of what it was made of."""

    result: Result
    root: StoredPiece


@dataclass(frozen=True, slots=True)
class _Assembled:
    """What a trace says."""

    job: TraceJob
    closed_by: ClosedBy
    exchanges: tuple[_Exchange, ...]
    sources: tuple[Source, ...]

    @property
    def found(self) -> list[Found]:
        """For judging: each exchange at its place."""
        return [Found(one.root.record, (one.result,)) for one in self.exchanges]

    @property
    def characters(self) -> int:
        """How much there is to score."""
        return sum(one.characters for one in self.found)


class AssemblyWork(LeasedWork[TraceJob]):
    """Leased work on traces that are due, a few a run.

    A trace is claimed when nothing of it lies ahead in a partition of the ``topics``, as far as is known from ``ends``.
    It is closed in the transaction that stores its exchanges; if more has come meanwhile it is due again. ``lookup``
    gives what documents say that a trace only names.
    """

    def __init__(
        self,
        *,
        traces: Traces,
        offsets: Offsets,
        leases: Leases,
        judging: Judging,
        dead_letters: DeadLetters,
        lookup: Lookup,
        ends: PartitionEnds,
        topics: Sequence[str],
        due: TracePolicy,
        open_per_app: int,
        default_app: str,
        policy: LeasePolicy,
        retry: RetryPolicy,
        metrics: Metrics,
    ) -> None:
        super().__init__(leases=leases, scorer_id=judging.scorer_id, policy=policy)
        self._traces = traces
        self._offsets = offsets
        self._judging = judging
        self._dead_letters = dead_letters
        self._lookup = lookup
        self._ends = ends
        self._topics = tuple(topics)
        self._due = due
        self._open_per_app = open_per_app
        self._default_app = default_app
        self._retry = retry
        self._metrics = metrics
        self._counted_at = 0.0

    def run(self) -> bool:
        """Claim traces and close them. False if none is due, or if a stop is asked for; otherwise as the others."""
        try:
            return super().run()
        except Stopped:
            self.release()
            return False

    def _claim(self) -> tuple[TraceJob, ...]:
        policy = self._policy
        for asked in self._ends.take():
            self._offsets.note_ends(asked.topic, policy.owner, asked.ends, asked.age_s)
        self._bound_open()
        return self._traces.claim(
            policy.owner, topics=self._topics, policy=self._due, lease_s=policy.lease_s, limit=TRACES_AT_ONCE
        )

    def _bound_open(self) -> None:
        if time.monotonic() < self._counted_at + SURPLUS_EVERY_S:
            return
        if surplus := self._traces.close_surplus(self._open_per_app):
            log.warning("too_many_open_traces", closed_early=surplus, open_per_app=self._open_per_app)
        self._counted_at = time.monotonic()

    def _work_on(self, jobs: tuple[TraceJob, ...]) -> None:
        # What may have ended a worker must take no other along.
        suspects = [job for job in jobs if job.attempts > 1]
        for job in suspects:
            self._close([job], gives_up=job.attempts > MAX_ATTEMPTS)
        self._close([job for job in jobs if job.attempts == 1])

    def _close(self, jobs: Sequence[TraceJob], *, gives_up: bool = False) -> None:
        with self._metrics.stage(Stage.ASSEMBLE):
            left = list(self._assembled(jobs))
        while left:
            end = self._judging.pace.fitting([one.characters for one in left])
            part, left = left[:end], left[end:]
            judged = iter(self._judging.settlements([found for one in part for found in one.found], gives_up=gives_up))
            self._store([self._closing(one, [next(judged) for _ in one.exchanges]) for one in part])

    # --- what a trace says ---

    def _assembled(self, jobs: Sequence[TraceJob]) -> Iterator[_Assembled]:
        """Those that can be closed; the others wait on."""
        for job, pieces in self._with_pieces(jobs):
            closed_by, exchanges = self._read(job, pieces)
            if closed_by is None:
                self._retry.call(lambda: self._traces.postpone(job, self._due), name="postpone")  # noqa: B023 - as above
            else:
                yield _Assembled(job, closed_by, exchanges, _sources(pieces))

    def _with_pieces(self, jobs: Sequence[TraceJob]) -> Iterator[tuple[TraceJob, tuple[StoredPiece, ...]]]:
        """A few at a time, since each may be large."""
        for part in _portions(jobs):
            found = self._retry.call(lambda: self._traces.pieces(part), name="pieces")  # noqa: B023 - called at once
            for job in part:
                yield job, found.pop(job.id)

    def _read(self, job: TraceJob, pieces: Sequence[StoredPiece]) -> tuple[ClosedBy | None, tuple[_Exchange, ...]]:
        """Why the trace is closed now, None if it is not, and what is to be told of it."""
        if job.closed_by is ClosedBy.TOO_LARGE:
            detail = f"a trace of more than {MAX_STEPS} steps or {MAX_BYTES} bytes"
            return job.closed_by, (_Exchange(Rejected(RejectReason.TOO_LARGE, detail), _root(pieces)),)
        try:
            said = [(piece, piece.steps()) for piece in pieces]
            steps, trace_id = [step for _, theirs in said for step in theirs], _trace_id(job, pieces)
            assembly = assemble(steps, trace_id)
        except Exception as error:  # noqa: BLE001 - whatever a trace does to us, the others go on
            log.error("trace_not_assembled", trace=job.id, error=type(error).__name__)
            detail = f"the trace cannot be put together: {type(error).__name__}"
            return job.closed_by or ClosedBy.COMPLETE, (
                _Exchange(Rejected(RejectReason.WRONG_SHAPE, detail), _root(pieces)),
            )
        closed_by = job.closed_by or _closed_by(job, assembly)
        if closed_by is None:
            return None, ()
        if assembly.wanted:
            texts = self._retry.call(lambda: self._lookup(assembly.wanted), name="documents")
            assembly = assemble(steps, trace_id, texts)
        return closed_by, self._exchanges(assembly, said)

    def _exchanges(
        self, assembly: Assembly, said: Sequence[tuple[StoredPiece, Sequence[Step]]]
    ) -> tuple[_Exchange, ...]:
        if not assembly.exchanges:
            return (_Exchange(Skipped(assembly.reason or SkipReason.NOT_RAG), _root_of(said)),)
        now = datetime.now(UTC)
        exchanges = []
        for native in assembly.exchanges:
            metadata = native.get("metadata")
            root = _root_of(said, metadata.get("span_id") if isinstance(metadata, dict) else None)
            decoded = decode_exchange(native, root.adapter, default_app=self._default_app, received_at=now)
            exchanges.append(_Exchange(decoded, root))
        return tuple(exchanges)

    # --- what becomes of it ---

    def _closing(self, assembled: _Assembled, settlements: Sequence[Settlement]) -> Closing:
        job = assembled.job
        origin = Origin(job.id, job.version, job.trace, assembled.closed_by, assembled.sources)
        numbered = enumerate(zip(settlements, assembled.exchanges, strict=True), start=1)
        told = tuple(
            (replace(settlement, item=number, origin=origin), exchange.root.incarnation)
            for number, (settlement, exchange) in numbered
        )
        apps = (settlement.decoded.interaction.app for settlement in settlements if settlement.decoded is not None)
        app = next(apps, job.app or self._default_app)
        has_around = all(exchange.root.has_around for exchange in assembled.exchanges)
        return Closing(job, assembled.closed_by, app, told, has_around)

    def _store(self, closings: Sequence[Closing]) -> None:
        for closing in closings:
            self._send(closing)
        try:
            self._retry.call(lambda: self._write(closings), name="close")
        except _TooMuch:
            log.warning("traces_too_slow_for_store", traces=len(closings))
            self._store_each(closings)
        except StoreRejected as error:
            if len(closings) == 1:
                self._store_rejected(closings[0], error)
                return
            log.warning("traces_rejected_by_store", traces=len(closings), error=str(error))
            self._store_each(closings)

    def _store_each(self, closings: Sequence[Closing]) -> None:
        for closing in closings:
            self._store([closing])

    def _store_rejected(self, closing: Closing, error: StoreRejected) -> None:
        first, incarnation = closing.settlements[0]
        dead = Settlement(first.record, Outcome.DEAD_LETTERED, RejectReason.STORE_REJECTED, error.constraint or "")
        rejected = replace(closing, settlements=((dead, incarnation),))
        self._send(rejected)
        self._retry.call(lambda: self._write([rejected]), name="close")

    def _send(self, closing: Closing) -> None:
        """First the dead letters, then the books, as with messages."""
        settlements = [settlement for settlement, _ in closing.settlements]
        first = Form.WITHOUT_VALUE if closing.has_around else Form.PLACE_ONLY
        self._retry.call(lambda: self._dead_letters.send(settlements, first), name="dead_letters")

    def _write(self, closings: Sequence[Closing]) -> None:
        with self._metrics.stage(Stage.STORE):
            try:
                closed = self._traces.close(self._scorer_id, closings)
            except StoreTimeout as error:
                if len(closings) < 2:
                    raise
                raise _TooMuch from error
        self._metrics.traces_closed(closed.traces, closed.results)
        told = {f"{outcome}:{reason or '-'}": count for (outcome, reason), count in closed.results.items()}
        count = sum(closed.traces.values())
        log.info("traces_closed", traces=count, overtaken=len(closings) - count, **told)

    def _log_postponed(self, **facts: object) -> None:
        log.warning("assembling_postponed", **facts)


class _TooMuch(Exception):  # noqa: N818 - reads as the fact it states
    """Several traces take longer to store than a statement may."""


def _portions(jobs: Sequence[TraceJob]) -> Iterator[list[TraceJob]]:
    """So that none is larger than the largest trace, unless it is a single one."""
    portion: list[TraceJob] = []
    for job in jobs:
        if portion and sum(one.size for one in portion) + job.size > MAX_BYTES:
            yield portion
            portion = []
        portion.append(job)
    if portion:
        yield portion


def _closed_by(job: TraceJob, assembly: Assembly) -> ClosedBy | None:
    if assembly.is_complete:
        return ClosedBy.COMPLETE
    return ClosedBy.TIME_OUT if job.waited else None


def _trace_id(job: TraceJob, pieces: Iterable[StoredPiece]) -> str:
    """That of the uppermost key, whatever the order in which they came."""
    keys = uppermost_keys(Piece(piece.trace, (), piece.adapter, piece.within) for piece in pieces)
    return min((key.id for key in keys.values()), default=job.trace.id)


def _root(pieces: Sequence[StoredPiece]) -> StoredPiece:
    """The first; a trace always has one."""
    return pieces[0]


def _root_of(said: Sequence[tuple[StoredPiece, Sequence[Step]]], step_id: object = None) -> StoredPiece:
    """The piece that had a step first; without one, that with the root of the trace, or the first of all."""
    pieces = chain(
        (piece for piece, steps in said if any(step.id == step_id for step in steps)),
        (piece for piece, steps in said if any(step.is_root for step in steps)),
        (piece for piece, _ in said),
    )
    return next(pieces)


def _sources(pieces: Iterable[StoredPiece]) -> tuple[Source, ...]:
    """Where the pieces lie, each place once."""
    offsets: dict[tuple[str, int, int], set[int]] = {}
    for piece in pieces:
        record = piece.record
        offsets.setdefault((record.topic, record.partition, piece.incarnation), set()).add(record.offset)
    return tuple(Source(*place, tuple(sorted(those))) for place, those in sorted(offsets.items()))
