"""Opens what the settings choose: nobody, a classifier on the model's thread, or an endpoint beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from gasp_core.entailment import load_entailment_model
from gasp_core.errors import ModelError
from worker.errors import SettingsError
from worker.jobs.leased import LeasePolicy
from worker.rules.opinion import SecondOpinion
from worker.runtime.background import Background
from worker.runtime.stop import Stop
from worker.runtime.telemetry import Telemetry
from worker.second_opinion.chat import Chat
from worker.second_opinion.classifier import Classifier
from worker.second_opinion.opinion_work import OpinionWork
from worker.second_opinion.thread import PART, OpinionThread
from worker.settings.settings import Settings
from worker.store.leases import Leases
from worker.store.opinion_jobs import OpinionJobs

LEASE_MARGIN_S = 60.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class OpinionNeeds:
    """What asking needs of the worker. ``owner`` is this process, as no other."""

    settings: Settings
    queue: OpinionJobs
    leases: Leases
    scorer_id: int
    owner: str
    stop: Stop
    telemetry: Telemetry


@contextmanager
def second_opinions(at: OpinionNeeds) -> Iterator[tuple[OpinionWork, ...]]:
    """Ask for second opinions until the context is left; gives what has to run on the model's thread, if anything.

    Raises SettingsError if the classifier cannot be used. A fault of the thread beside asks for the stop, and is
    raised on leaving.
    """
    settings = at.settings
    if settings.second_opinion_model is not None:
        second = load_classifier(settings.second_opinion_model, settings.device)
        yield (_asking(at, second, settings.attribution_lease_s),)
    elif settings.second_opinion_url is not None:
        chat = Chat(settings)
        asking = _asking(at, chat, settings.second_opinion_timeout_s + LEASE_MARGIN_S)
        within_s = settings.work_timeout_s + settings.second_opinion_timeout_s
        beside = OpinionThread(asking, chat, at.stop, at.telemetry, within_s=within_s)
        with Background(PART, beside.run, at.stop):
            yield ()
    else:
        yield ()


def load_classifier(name: str, device: str) -> Classifier:
    """The classifier by hub name or folder. Raises SettingsError, which names the settings to look at."""
    try:
        return Classifier(load_entailment_model(name, device=device))
    except ModelError as error:
        raise SettingsError(f"{error}; look at GASP_SECOND_OPINION_MODEL") from error


def _asking(at: OpinionNeeds, second: SecondOpinion, lease_s: float) -> OpinionWork:
    log.info("second_opinions_on", verifier=second.verifier, daily=at.settings.second_opinion_daily)
    return OpinionWork(
        queue=at.queue,
        leases=at.leases,
        scorer_id=at.scorer_id,
        policy=LeasePolicy(at.owner, lease_s, at.settings.attribution_max_attempts),
        second=second,
        daily=at.settings.second_opinion_daily,
        metrics=at.telemetry.metrics,
    )
