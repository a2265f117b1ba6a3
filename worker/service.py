"""The composition root: opens everything that a worker needs, runs its roles, and closes it all."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.metadata import version

import structlog
import torch

from gasp_core.detectors.detector import Bounds, Detector
from gasp_core.detectors.registry import AUTO, best_for
from gasp_core.detectors.standard.figures import Track
from gasp_core.detectors.standard.standardise import standardised
from gasp_core.errors import ModelError, ModelNotFound
from gasp_core.grounding import Exchange
from gasp_core.identity import ScorerIdentity
from gasp_core.loading import named_faults
from gasp_core.model import load_model
from gasp_core.packaged import resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.plan import Limits
from gasp_core.scorer import GroundingScorer
from schemas.encodings.schema import Schemas
from worker.documents.documents import opened_documents
from worker.errors import SettingsError, Stopped
from worker.export.exporter import exporting
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.endpoints import open_sink
from worker.ingest.ends import PartitionEnds
from worker.ingest.judging import Judging
from worker.ingest.pace import PART_S
from worker.ingest.scoring import AnswerScorer, Scoring, TellsProgress
from worker.ingest.settle import Ingest
from worker.ingest.topic_reader import TopicReader
from worker.jobs.assembling import AssemblyWork
from worker.jobs.attribution import AttributionWork
from worker.jobs.leased import LeasePolicy
from worker.jobs.maintenance import maintenance_jobs
from worker.jobs.rescoring import RescoringWork
from worker.jobs.schedule import scheduled_jobs
from worker.review.labelling import labelling
from worker.review.relays import relaying
from worker.rules.pieces import TracePolicy
from worker.rules.settlement import Settled
from worker.runtime.background import Background
from worker.runtime.engine import Engine
from worker.runtime.health import serve_health
from worker.runtime.observer import observed
from worker.runtime.retry import RetryPolicy
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.runtime.watchdog import Watchdog
from worker.schema_registry.schemas import opened_schemas
from worker.second_opinion.opinion_work import OpinionWork
from worker.second_opinion.start import OpinionNeeds, second_opinions
from worker.settings.detectors import choose_detector
from worker.settings.roles import Role
from worker.settings.settings import Settings
from worker.store.schema import require_usable_schema
from worker.store.scorers import Scorers
from worker.store.store import Store, open_store
from worker.store.thresholds import Thresholds

ENGINE_LOOK_S = 1.0
# So that a part may take several times what was expected of it.
PARTS_IN_TIMEOUT = 4
# A trace is small work: what a worker that died had at hand waits no longer than this.
TRACE_LEASE_S = 30.0
# Exchanges of the reference set that are read between two lines of the log.
REFERENCE_TOLD = 5
SEEDED = "seeded default, not calibrated for this application; see docs/thresholds.md"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Worker:
    """What the parts of a scoring worker share.

    ``identity`` is that of scorer and detector together, ``owner`` is this process, as no other.
    """

    settings: Settings
    store: Store
    scorer: AnswerScorer
    detector: Detector
    identity: ScorerIdentity
    scorer_id: int
    owner: str
    stop: Stop
    telemetry: Telemetry


def run_service(
    settings: Settings,
    roles: Collection[Role],
    stop: Stop,
    *,
    on_settled: Callable[[Settled], None] = lambda _: None,
    load: Callable[[Settings], AnswerScorer] | None = None,
) -> bool:
    """Run the roles until ``stop`` is set, then finish the work at hand and leave the consumer group.

    ``on_settled`` is called from the consuming thread after each batch; ``load`` makes the scorer (None:
    ``load_scorer``). Gives whether all work was finished; if not, it still runs, and the process has to be ended.
    Raises WorkerError, StoreNotReady, StoreRejected or BrokerMisconfigured if the worker cannot work as it is set up.
    """
    owner = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    telemetry = Telemetry()
    with ExitStack() as stack:
        _serve(settings, telemetry, stack)
        name = f"gasp-worker {owner}"
        store = stack.enter_context(open_store(settings.database, application_name=name, left_s=stop.left_s))
        start = RetryPolicy(stop, telemetry, part="start", within_s=settings.work_timeout_s)
        start.call(lambda: require_usable_schema(store.server), name="schema")
        start.call(store.weekly_partitions.ensure, name="weeks")
        stack.enter_context(
            observed(
                telemetry,
                jobs=store.attribution_jobs,
                outbox=store.outbox,
                runs=store.calibration_runs,
                traces=store.traces,
            )
        )
        if Role.MAINTAIN in roles:
            _maintain(settings, store, owner, stop, telemetry, stack)
        if roles == {Role.MAINTAIN}:
            telemetry.liveness.excuse("start")
            _started(telemetry, roles, owner, scorer="")
            stop.wait()
            finished = True
        else:
            worker = _with_scorer(settings, store, owner, stop, telemetry, start, load or load_scorer)
            finished = _score(worker, roles, on_settled)
    finished = finished and not stop.has_abandoned
    log.info("stopped", owner=owner, finished=finished)
    return finished


def _with_scorer(
    settings: Settings,
    store: Store,
    owner: str,
    stop: Stop,
    telemetry: Telemetry,
    start: RetryPolicy,
    load: Callable[[Settings], AnswerScorer],
) -> _Worker:
    """Load the model and make known what verdicts are given by."""
    scorer = load(settings)
    newest = start.call(lambda: store.scorers.newest_method(scorer.identity.model), name="newest")
    chosen = choose_detector(settings.detector, scorer.identity, newest, settings.detector_file)
    if settings.detector == AUTO and settings.detector_file is None and chosen is not best_for(scorer.identity):
        log.warning("better_detector", detector=chosen.name, better=best_for(scorer.identity).name)
    detector = standardised_for(scorer, chosen, partial(tracked, start, stop))
    if taps := detector.taps():
        scorer = scorer.reading(taps)
    identity = detector.judging(scorer.identity)
    first = detector.require_bounds()
    scorer_id = start.call(lambda: register(store.scorers, store.thresholds, identity, first), name="register")
    telemetry.liveness.excuse("start")
    return _Worker(settings, store, scorer, detector, identity, scorer_id, owner, stop, telemetry)


def _maintain(settings: Settings, store: Store, owner: str, stop: Stop, telemetry: Telemetry, stack: ExitStack) -> None:
    """The role that needs no model: what is done on a schedule, review tasks out, labels in."""
    stack.enter_context(scheduled_jobs(store.job_runs, owner, maintenance_jobs(store, settings.trace_keep_days), stop))
    stack.enter_context(relaying(settings, store.outbox, store.leases, owner, stop, telemetry))
    stack.enter_context(exporting(settings, store.exports, store.leases, owner, stop, telemetry))
    stack.enter_context(
        labelling(
            settings,
            offsets=store.offsets,
            labels=store.labels,
            settlements=store.label_settlements,
            owner=owner,
            stop=stop,
            telemetry=telemetry,
        )
    )


def load_scorer(settings: Settings) -> GroundingScorer:
    """The scorer that the settings ask for. Raises SettingsError, which names those to look at, if there is none."""
    try:
        return _load(settings)
    except ModelNotFound as error:
        raise SettingsError(f"{error}; look at GASP_MODEL and GASP_MODEL_REVISION") from error
    except ModelError as error:
        raise SettingsError(f"{error}; look at GASP_MODEL, GASP_DEVICE and GASP_DTYPE") from error


def standardised_for(scorer: AnswerScorer, detector: Detector, track: Track = iter) -> Detector:
    """The detector as it reads the scorer; ``track`` shows how far that is, where exchanges have to be read for it.

    Raises SettingsError if that cannot be.
    """
    try:
        return standardised(detector, scorer, track)
    except ModelError as error:
        raise SettingsError(f"GASP_DETECTOR: {error}") from error


def tracked(start: RetryPolicy, stop: Stop, exchanges: Sequence[Exchange]) -> Iterator[Exchange]:
    """Show signs of life between the exchanges. Raises Stopped if a stop is asked for."""
    for done, exchange in enumerate(exchanges):
        if stop.is_set():
            raise Stopped("reference")
        start.beat()
        if done % REFERENCE_TOLD == 0:
            log.info("reading_reference", done=done, exchanges=len(exchanges))
        yield exchange


def _load(settings: Settings) -> GroundingScorer:
    model = load_model(
        resolve_model(settings.model),
        device=settings.device,
        dtype=settings.dtype,
        revision=settings.model_revision,
    )
    torch.set_num_threads(settings.threads)
    with named_faults(model.name):
        choice = choose_passes(model, max_tokens=settings.max_batch_tokens, cache_bytes=settings.context_cache_bytes)
    log.info("model_loaded", device=str(model.device), passes=choice.reason)
    return GroundingScorer(model, limits=_limits(settings), masked=settings.masked_attribution, passes=choice.passes)


def register(scorers: Scorers, thresholds: Thresholds, identity: ScorerIdentity, first: Bounds) -> int:
    """Make known what verdicts are given by, and give it the detector's first bounds if it has none."""
    scorer_id = scorers.register(identity)
    thresholds.ensure_default(
        scorer_id, flag_below=first.flag_below, attribute_below=first.attribute_below, note=SEEDED
    )
    return scorer_id


def _limits(settings: Settings) -> Limits:
    return Limits(settings.max_context_tokens, settings.max_answer_tokens)


def _serve(settings: Settings, telemetry: Telemetry, stack: ExitStack) -> None:
    """Let others see whether we live, and let a watchdog see to it."""
    telemetry.readiness.set("start", "the worker is starting")
    stack.enter_context(Watchdog(telemetry.liveness))
    if settings.http_port is None:
        return
    port = stack.enter_context(
        serve_health(
            settings.http_host,
            settings.http_port,
            liveness=telemetry.liveness,
            readiness=telemetry.readiness,
            metrics=telemetry.metrics,
        )
    )
    log.info("serving_health", host=settings.http_host, port=port)


def _started(telemetry: Telemetry, roles: Collection[Role], owner: str, scorer: str) -> None:
    telemetry.metrics.built(version("gasp-audit"), scorer)
    telemetry.readiness.set("start", None)
    log.info("started", roles=sorted(roles), owner=owner, scorer=scorer)


def _score(worker: _Worker, roles: Collection[Role], on_settled: Callable[[Settled], None]) -> bool:
    """Run the roles that need the model; gives whether its work was finished."""
    settings = worker.settings
    scoring = Scoring(worker.scorer, worker.telemetry.metrics, _limits(settings))
    policy = LeasePolicy(worker.owner, settings.attribution_lease_s, settings.attribution_max_attempts)
    attribution = AttributionWork(
        queue=worker.store.attribution_jobs,
        leases=worker.store.leases,
        scoring=scoring,
        scorer_id=worker.scorer_id,
        policy=policy,
        metrics=worker.telemetry.metrics,
    )
    rescoring = RescoringWork(
        queue=worker.store.rescore_jobs,
        leases=worker.store.leases,
        thresholds=worker.store.thresholds,
        scoring=scoring,
        scorer_id=worker.scorer_id,
        detector=worker.detector,
        policy=policy,
    )
    retry = RetryPolicy(worker.stop, worker.telemetry, part="engine", within_s=settings.work_timeout_s)
    if isinstance(worker.scorer, TellsProgress):
        worker.scorer.tell_progress(retry.beat)
    attributes = Role.ATTRIBUTE in roles
    with _asking(worker) if attributes else nullcontext(()) as asking:
        behind: tuple[OpinionWork | RescoringWork, ...] = (*asking, rescoring)
        engine = Engine[Settled](
            attribution.run if attributes else None,
            settings.attribution_share,
            tuple(work.run for work in behind) if attributes else (),
            grace_s=worker.stop.remaining_s,
            beat=retry.beat,
        )
        with engine:
            _started(worker.telemetry, roles, worker.owner, worker.identity.label)
            if Role.CONSUME in roles:
                _consume(worker, scoring, engine, retry, on_settled)
            else:
                _wait(engine, worker.stop)
        if engine.abandoned:
            attribution.release()
            for work in behind:
                work.release()
    return not engine.abandoned


def _asking(worker: _Worker) -> AbstractContextManager[tuple[OpinionWork, ...]]:
    """What asks for second opinions, if anything does."""
    return second_opinions(
        OpinionNeeds(
            settings=worker.settings,
            queue=worker.store.opinion_jobs,
            leases=worker.store.leases,
            scorer_id=worker.scorer_id,
            owner=worker.owner,
            stop=worker.stop,
            telemetry=worker.telemetry,
        )
    )


@dataclass(frozen=True, slots=True)
class _Shared:
    """What those share who read topics and make exchanges of traces; ``retry`` is the engine's policy."""

    scoring: Scoring
    engine: Engine[Settled]
    retry: RetryPolicy
    on_settled: Callable[[Settled], None]
    schemas: Schemas
    ends: PartitionEnds = field(default_factory=PartitionEnds)


def _consume(
    worker: _Worker,
    scoring: Scoring,
    engine: Engine[Settled],
    retry: RetryPolicy,
    on_settled: Callable[[Settled], None],
) -> None:
    """The consume role; ``retry`` is the engine's policy. The first topic is read here, each other in a thread."""
    first, *others = worker.settings.topics
    with ExitStack() as stack:
        schemas = stack.enter_context(opened_schemas(worker.settings))
        shared = _Shared(scoring, engine, retry, on_settled, schemas)
        assembling = _assembling(worker, shared, stack)
        # After what follows was left: then nothing more is claimed, and what is at hand had its time.
        stack.callback(assembling.release)
        stack.enter_context(engine.turns(assembling.run))
        for topic in others:
            read = partial(_read_topic, worker, topic, shared)
            stack.enter_context(Background(f"topic {topic}", read, worker.stop))
        _read_topic(worker, first, shared)


def _assembling(worker: _Worker, shared: _Shared, stack: ExitStack) -> AssemblyWork:
    """What makes exchanges of traces; it has a producer of its own, for traces that are refused."""
    settings, store, telemetry = worker.settings, worker.store, worker.telemetry
    start = RetryPolicy(worker.stop, telemetry, part="assembling", within_s=settings.work_timeout_s)
    sink = stack.enter_context(start.call(lambda: open_sink(settings, worker.owner), name="sink"))
    telemetry.liveness.excuse("assembling")
    lease_s = min(TRACE_LEASE_S, worker.settings.attribution_lease_s)
    return AssemblyWork(
        traces=store.traces,
        offsets=store.offsets,
        leases=store.leases,
        judging=_judging(worker, shared),
        dead_letters=DeadLetters(sink, settings.dead_letter_topic, settings.max_message_bytes),
        lookup=stack.enter_context(opened_documents(settings, worker.stop.left_s)),
        ends=shared.ends,
        topics=settings.topics,
        due=_trace_policy(settings),
        open_per_app=settings.trace_open_per_app,
        default_app=settings.default_app,
        policy=LeasePolicy(worker.owner, lease_s, settings.attribution_max_attempts),
        retry=shared.retry,
        metrics=telemetry.metrics,
    )


def _trace_policy(settings: Settings) -> TracePolicy:
    return TracePolicy(timedelta(seconds=settings.trace_grace_s), timedelta(seconds=settings.trace_timeout_s))


def _read_topic(worker: _Worker, topic: str, shared: _Shared) -> None:
    """Read one topic until a stop is asked for."""
    settings, store, telemetry = worker.settings, worker.store, worker.telemetry
    is_first = topic == settings.first_topic
    poll = "poll" if is_first else f"poll {topic}"
    reader = TopicReader(
        settings=settings,
        offsets=store.offsets,
        owner=worker.owner,
        stop=worker.stop,
        telemetry=telemetry,
        retry=RetryPolicy(worker.stop, telemetry, part=poll, within_s=settings.wedged_after_s),
        topic=topic,
        group=settings.consumer_group if is_first else f"{settings.consumer_group}-{topic}",
        batch_messages=settings.batch_messages,
        first_start=settings.first_start,
        part="kafka" if is_first else f"kafka {topic}",
        on_ends=partial(shared.ends.put, topic),
    )
    with reader.opened(reader.open_source) as (source, dead_letters):
        ingest = Ingest(
            judging=_judging(worker, shared),
            settlements=store.settlements,
            dead_letters=dead_letters,
            max_message_bytes=settings.max_message_bytes,
            default_app=settings.default_app,
            format_name=settings.format_of(topic),
            schemas=shared.schemas,
            retry=shared.retry,
            metrics=telemetry.metrics,
            traces=_trace_policy(settings),
        )
        try:
            reader.run(source, ingest, shared.engine, shared.on_settled)
        finally:
            telemetry.liveness.excuse(poll)


def _judging(worker: _Worker, shared: _Shared) -> Judging:
    settings, store = worker.settings, worker.store
    return Judging(
        interactions=store.interactions,
        thresholds=store.thresholds,
        sampling=store.sampling,
        scoring=shared.scoring,
        scorer_id=worker.scorer_id,
        detector=worker.detector,
        retry=shared.retry,
        metrics=worker.telemetry.metrics,
        channels=settings.review_channels,
        exports=settings.export_destinations,
        part_s=min(PART_S, settings.work_timeout_s / PARTS_IN_TIMEOUT),
    )


def _wait(engine: Engine[Settled], stop: Stop) -> None:
    while not stop.wait(ENGINE_LOOK_S):
        engine.check()
