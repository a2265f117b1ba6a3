"""The composition root: opens everything that a worker needs, runs its roles, and closes it all."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version

import structlog
import torch

from gasp_core.errors import ModelError, ModelNotFound
from gasp_core.identity import ScorerIdentity
from gasp_core.model import load_model
from gasp_core.packaged import resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.plan import Limits
from gasp_core.scorer import GroundingScorer
from worker.broker.source import RecordSource
from worker.errors import SettingsError
from worker.ingest.consume import Consumer
from worker.ingest.dead_letters import DeadLetters
from worker.ingest.endpoints import open_sink, open_source
from worker.ingest.placement import INSIST_SESSIONS, Placement
from worker.ingest.scoring import AnswerScorer, Scoring
from worker.ingest.settle import Ingest
from worker.jobs.attribution import Attribution
from worker.jobs.leased import Terms
from worker.jobs.rescoring import Rescoring
from worker.jobs.schedule import scheduled_jobs
from worker.review.labelling import labelling
from worker.review.relays import relaying
from worker.rules.settlement import Settled
from worker.runtime.backoff import Patience
from worker.runtime.engine import Engine
from worker.runtime.health import serve_health
from worker.runtime.instruments import Instruments
from worker.runtime.observer import observed
from worker.runtime.stop import Stop
from worker.runtime.watchdog import Watchdog
from worker.second_opinion.asking import Asking
from worker.second_opinion.opened import Workplace, second_opinions
from worker.settings.detectors import Detector, choose_detector
from worker.settings.settings import Settings
from worker.store.schema import require_current_schema
from worker.store.store import Store, open_store

ENGINE_LOOK_S = 1.0
SEEDED = "seeded default, not calibrated for this application; see docs/thresholds.md"

log = structlog.get_logger(__name__)


class Role(StrEnum):
    """What a worker process does; all three by default."""

    CONSUME = "consume"
    ATTRIBUTE = "attribute"
    JOBS = "jobs"


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
    instruments: Instruments


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
    instruments = Instruments()
    with ExitStack() as stack:
        _serve(settings, instruments, stack)
        store = stack.enter_context(open_store(settings.database, application_name=f"gasp-worker {owner}"))
        start = Patience(stop, instruments, part="start", within_s=settings.work_timeout_s)
        start.outlast(lambda: require_current_schema(store), name="schema")
        start.outlast(store.ensure_weeks, name="weeks")
        stack.enter_context(observed(store, instruments))
        if Role.JOBS in roles:
            stack.enter_context(scheduled_jobs(store, owner))
            stack.enter_context(relaying(settings, store, owner, stop, instruments))
            stack.enter_context(labelling(settings, store, owner, stop, instruments))
        if roles == {Role.JOBS}:
            instruments.liveness.excuse("start")
            _started(instruments, roles, owner, scorer="")
            stop.wait()
            return True
        scorer = (load or load_scorer)(settings)
        detector = choose_detector(settings.detector, scorer.identity)
        identity = detector.judging(scorer.identity)
        scorer_id = start.outlast(lambda: register(store, identity, detector), name="register")
        instruments.liveness.excuse("start")
        worker = _Worker(settings, store, scorer, detector, identity, scorer_id, owner, stop, instruments)
        finished = _score(worker, roles, on_settled)
    log.info("stopped", owner=owner, finished=finished)
    return finished


def load_scorer(settings: Settings) -> GroundingScorer:
    """The scorer that the settings ask for. Raises SettingsError, which names those to look at, if there is none."""
    try:
        return _load(settings)
    except ModelNotFound as error:
        raise SettingsError(f"{error}; look at GASP_MODEL and GASP_MODEL_REVISION") from error
    except ModelError as error:
        raise SettingsError(f"{error}; look at GASP_MODEL, GASP_DEVICE and GASP_DTYPE") from error


def _load(settings: Settings) -> GroundingScorer:
    model = load_model(
        resolve_model(settings.model),
        device=settings.device,
        dtype=settings.dtype,
        revision=settings.model_revision,
    )
    torch.set_num_threads(settings.threads)
    choice = choose_passes(model, max_tokens=settings.max_batch_tokens, cache_bytes=settings.context_cache_bytes)
    log.info("model_loaded", device=str(model.device), passes=choice.reason)
    return GroundingScorer(model, limits=_limits(settings), masked=settings.masked_attribution, passes=choice.passes)


def register(store: Store, identity: ScorerIdentity, detector: Detector) -> int:
    """Make known what verdicts are given by, and give it the detector's first threshold if it has none."""
    scorer_id = store.register_scorer(identity)
    store.ensure_default_threshold(
        scorer_id, flag_below=detector.flag_below, attribute_below=detector.attribute_below, note=SEEDED
    )
    return scorer_id


def _limits(settings: Settings) -> Limits:
    return Limits(settings.max_context_tokens, settings.max_answer_tokens)


def _serve(settings: Settings, instruments: Instruments, stack: ExitStack) -> None:
    """Let others see whether we live, and let a watchdog see to it."""
    instruments.readiness.set("start", "the worker is starting")
    stack.enter_context(Watchdog(instruments.liveness))
    if settings.http_port is None:
        return
    port = stack.enter_context(
        serve_health(
            settings.http_host,
            settings.http_port,
            liveness=instruments.liveness,
            readiness=instruments.readiness,
            metrics=instruments.metrics,
        )
    )
    log.info("serving_health", host=settings.http_host, port=port)


def _started(instruments: Instruments, roles: Collection[Role], owner: str, scorer: str) -> None:
    instruments.metrics.built(version("gasp-audit"), scorer)
    instruments.readiness.set("start", None)
    log.info("started", roles=sorted(roles), owner=owner, scorer=scorer)


def _score(worker: _Worker, roles: Collection[Role], on_settled: Callable[[Settled], None]) -> bool:
    """Run the roles that need the model; gives whether its work was finished."""
    settings = worker.settings
    scoring = Scoring(worker.scorer, worker.instruments.metrics, _limits(settings))
    terms = Terms(worker.owner, settings.attribution_lease_s, settings.attribution_max_attempts)
    attribution = Attribution(
        store=worker.store,
        scoring=scoring,
        scorer_id=worker.scorer_id,
        terms=terms,
        metrics=worker.instruments.metrics,
    )
    rescoring = Rescoring(
        store=worker.store, scoring=scoring, scorer_id=worker.scorer_id, detector=worker.detector, terms=terms
    )
    patience = Patience(worker.stop, worker.instruments, part="engine", within_s=settings.work_timeout_s)
    attributes = Role.ATTRIBUTE in roles
    with _asking(worker) if attributes else nullcontext(()) as asking:
        behind: tuple[Asking | Rescoring, ...] = (*asking, rescoring)
        engine = Engine[Settled](
            attribution.run if attributes else None,
            settings.attribution_share,
            tuple(work.run for work in behind) if attributes else (),
            grace_s=worker.stop.remaining_s,
            beat=patience.beat,
        )
        with engine:
            _started(worker.instruments, roles, worker.owner, worker.identity.label)
            if Role.CONSUME in roles:
                _consume(worker, scoring, engine, patience, on_settled)
            else:
                _wait(engine, worker.stop)
        if engine.abandoned:
            attribution.release()
            for work in behind:
                work.release()
    return not engine.abandoned


def _asking(worker: _Worker) -> AbstractContextManager[tuple[Asking, ...]]:
    """What asks for second opinions, if anything does."""
    return second_opinions(
        Workplace(
            settings=worker.settings,
            store=worker.store,
            scorer_id=worker.scorer_id,
            owner=worker.owner,
            stop=worker.stop,
            instruments=worker.instruments,
        )
    )


def _consume(
    worker: _Worker,
    scoring: Scoring,
    engine: Engine[Settled],
    patience: Patience,
    on_settled: Callable[[Settled], None],
) -> None:
    """The consume role; ``patience`` is the engine's."""
    settings, instruments = worker.settings, worker.instruments
    poll_patience = Patience(worker.stop, instruments, part="poll", within_s=settings.wedged_after_s)
    with ExitStack() as stack:
        sink = stack.enter_context(poll_patience.outlast(lambda: open_sink(settings, worker.owner), name="sink"))
        source = poll_patience.outlast(lambda: _source(settings, worker.owner), name="source")
        stack.callback(source.close)
        stack.callback(instruments.liveness.excuse, "poll")
        ingest = Ingest(
            store=worker.store,
            scoring=scoring,
            scorer_id=worker.scorer_id,
            detector=worker.detector,
            dead_letters=DeadLetters(sink, settings.dead_letter_topic, settings.max_message_bytes),
            max_message_bytes=settings.max_message_bytes,
            default_app=settings.default_app,
            patience=patience,
            metrics=instruments.metrics,
            channels=settings.review_channels,
        )
        placement = Placement(
            source=source,
            store=worker.store,
            topic=settings.topic,
            owner=worker.owner,
            first_start=settings.first_start,
            insist_after_s=INSIST_SESSIONS * settings.session_timeout_s,
            instruments=instruments,
        )
        Consumer(
            source=source,
            placement=placement,
            ingest=ingest,
            engine=engine,
            topic=settings.topic,
            batch_messages=settings.batch_messages,
            batch_bytes=settings.batch_bytes,
            stop=worker.stop,
            patience=poll_patience,
            instruments=instruments,
            on_settled=on_settled,
        ).run()


def _source(settings: Settings, owner: str) -> RecordSource:
    return open_source(settings, owner, settings.topic, settings.consumer_group, settings.batch_messages)


def _wait(engine: Engine[Settled], stop: Stop) -> None:
    while not stop.wait(ENGINE_LOOK_S):
        engine.check()
