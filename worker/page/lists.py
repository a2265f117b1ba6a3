"""The lists: what waits in each app, one's own labels, and what reviewers differ on."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from worker.page.parts import lead_of, pages_of, parts_of, reviewer_of
from worker.page.saying import TOOL
from worker.page.screen import Screen, screen_of
from worker.rules.agreement import agreements
from worker.store.disputes import Dispute
from worker.store.review_queue import LATELY_DAYS

MAX_OWN = 200
MAX_DISPUTED = 20
_WHY_LEADS = "who has seen what others said does not judge for themselves."


@dataclass(frozen=True, slots=True)
class ShownDispute:
    """A dispute, with the sentence in its answer."""

    dispute: Dispute
    screen: Screen


def show_apps(request: Request) -> Response:
    """How many sentences wait for the reviewer in each app, to choose one of them."""
    who, parts = reviewer_of(request), parts_of(request)
    waiting = parts.queue.waiting_by_app(who.name)
    return pages_of(request).answer(request, "apps.html", who, waiting=waiting, app=request.session.get("app", ""))


def show_own(request: Request) -> Response:
    """The reviewer's last labels, to correct them or take them back."""
    who, parts = reviewer_of(request), parts_of(request)
    said = parts.queue.said_lately(who.name, TOOL, MAX_OWN)
    return pages_of(request).answer(request, "own.html", who, said=said, most=MAX_OWN, days=LATELY_DAYS)


def show_disputes(request: Request) -> Response:
    """For a lead: the sentences on which reviewers differ, with what each of them said side by side."""
    who, parts = lead_of(request, _WHY_LEADS), parts_of(request)
    shown = []
    for dispute in parts.disputes.open(MAX_DISPUTED):
        task = parts.tasks.by_id(dispute.task_id)
        screen = None if task is None else screen_of(task, dispute.sentence_index)
        if screen is not None:
            shown.append(ShownDispute(dispute, screen))
    return pages_of(request).answer(request, "disputes.html", who, disputes=shown)


def show_agreement(request: Request) -> Response:
    """For a lead: how far reviewers agree, in each app and by pairs."""
    who, parts = lead_of(request, _WHY_LEADS), parts_of(request)
    found = agreements(parts.votes.last())
    return pages_of(request).answer(request, "agreement.html", who, agreements=found)
