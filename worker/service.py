"""The composition root: opens everything that a worker needs, runs its roles, and closes it all."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Collection
from contextlib import ExitStack
from enum import StrEnum

import structlog
import torch

from gasp_core.model import load_model
from gasp_core.packaged import resolve_model
from gasp_core.passes.choice import choose_passes
from gasp_core.plan import Limits
from gasp_core.scorer import GroundingScorer
from worker.attribution import Attribution
from worker.backoff import outlast
from worker.broker.sink import RecordSink
from worker.broker.source import RecordSource
from worker.consume import Consumer
from worker.dead_letters import DeadLetters
from worker.engine import Engine
from worker.ingest import Ingest
from worker.schedule import scheduled_jobs
from worker.schema import require_current_schema
from worker.seeds import ATTRIBUTE_BELOW_NATS, FLAG_BELOW_NATS, NOTE
from worker.settings import Settings
from worker.settlement import Settled
from worker.store import Store, open_store
from worker.topics import MESSAGE_FRAME_BYTES

ENGINE_LOOK_S = 1.0

log = structlog.get_logger(__name__)


class Role(StrEnum):
    """What a worker process does; all three by default."""

    CONSUME = "consume"
    ATTRIBUTE = "attribute"
    JOBS = "jobs"


def run_service(
    settings: Settings,
    roles: Collection[Role],
    stop: threading.Event,
    on_settled: Callable[[Settled], None] = lambda _: None,
) -> None:
    """Run the roles until ``stop`` is set, then finish the work at hand and leave the consumer group.

    ``on_settled`` is called from the consuming thread after each batch. Raises WorkerError, StoreRejected,
    BrokerMisconfigured or GaspError if the worker cannot work as it is set up.
    """
    owner = f"{socket.gethostname()}-{os.getpid()}"
    with ExitStack() as stack:
        store = stack.enter_context(open_store(settings.database, application_name=f"gasp-worker {owner}"))
        outlast(lambda: require_current_schema(store), name="schema", stop=stop)
        if Role.JOBS in roles:
            stack.enter_context(scheduled_jobs(store))
        if roles == {Role.JOBS}:
            log.info("started", roles=sorted(roles), owner=owner)
            stop.wait()
            return
        scorer = load_scorer(settings)
        scorer_id = outlast(lambda: register(store, scorer), name="register", stop=stop)
        attribution = Attribution(
            store=store,
            scorer=scorer,
            scorer_id=scorer_id,
            owner=owner,
            lease_s=settings.attribution_lease_s,
            max_attempts=settings.attribution_max_attempts,
        )
        attribute = attribution.run_one if Role.ATTRIBUTE in roles else None
        engine = stack.enter_context(Engine[Settled](attribute, settings.attribution_share))
        log.info("started", roles=sorted(roles), owner=owner, scorer=scorer.identity.label)
        if Role.CONSUME in roles:
            _consume(settings, store, scorer, scorer_id, engine, owner=owner, stop=stop, on_settled=on_settled)
        else:
            _wait(engine, stop)
    log.info("stopped", owner=owner)


def load_scorer(settings: Settings) -> GroundingScorer:
    """The scorer that the settings ask for. Raises ModelNotFound or ModelUnsupported."""
    model = load_model(
        resolve_model(settings.model),
        device=settings.device,
        dtype=settings.dtype,
        revision=settings.model_revision,
    )
    torch.set_num_threads(settings.threads)
    choice = choose_passes(model, max_tokens=settings.max_batch_tokens, cache_bytes=settings.context_cache_bytes)
    log.info("model_loaded", device=str(model.device), passes=choice.reason)
    return GroundingScorer(
        model,
        limits=Limits(settings.max_context_tokens, settings.max_answer_tokens),
        masked=settings.masked_attribution,
        passes=choice.passes,
    )


def register(store: Store, scorer: GroundingScorer) -> int:
    """Make the scorer known and give it a first threshold if it has none."""
    scorer_id = store.register_scorer(scorer.identity)
    store.ensure_default_threshold(
        scorer_id, flag_below=FLAG_BELOW_NATS, attribute_below=ATTRIBUTE_BELOW_NATS, note=NOTE
    )
    return scorer_id


def _consume(  # the wiring of the consume role
    settings: Settings,
    store: Store,
    scorer: GroundingScorer,
    scorer_id: int,
    engine: Engine[Settled],
    *,
    owner: str,
    stop: threading.Event,
    on_settled: Callable[[Settled], None],
) -> None:
    with ExitStack() as stack:
        sink = stack.enter_context(outlast(lambda: _sink(settings, owner), name="sink", stop=stop))
        source = outlast(lambda: _source(settings, owner), name="source", stop=stop)
        stack.callback(source.close)
        ingest = Ingest(
            store=store,
            scorer=scorer,
            scorer_id=scorer_id,
            dead_letters=DeadLetters(sink, settings.dead_letter_topic, settings.max_message_bytes),
            max_message_bytes=settings.max_message_bytes,
            default_app=settings.default_app,
            stop=stop,
        )
        Consumer(
            source=source,
            store=store,
            ingest=ingest,
            engine=engine,
            topic=settings.topic,
            owner=owner,
            batch_messages=settings.batch_messages,
            stop=stop,
            on_settled=on_settled,
        ).run()


def _sink(settings: Settings, owner: str) -> RecordSink:
    return RecordSink(
        settings.kafka_bootstrap_servers,
        client_id=owner,
        max_request_bytes=settings.max_message_bytes + MESSAGE_FRAME_BYTES,
    )


def _source(settings: Settings, owner: str) -> RecordSource:
    return RecordSource(
        settings.kafka_bootstrap_servers,
        settings.topic,
        settings.consumer_group,
        client_id=owner,
        session_timeout_ms=int(settings.session_timeout_s * 1000),
        max_poll_interval_ms=int(settings.max_poll_interval_s * 1000),
        max_poll_records=settings.batch_messages,
        partition_fetch_max_bytes=settings.max_message_bytes + MESSAGE_FRAME_BYTES,
    )


def _wait(engine: Engine[Settled], stop: threading.Event) -> None:
    while not stop.wait(ENGINE_LOOK_S):
        if engine.fault is not None:
            raise RuntimeError("the engine thread ended") from engine.fault
