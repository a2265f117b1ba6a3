"""The commands ``gasp-worker review …``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gasp_core.terminal import say, visible
from worker.rules.policy import Objective, ReviewPolicy
from worker.terminal.database import opened_store

if TYPE_CHECKING:
    from worker.store.policies import ReviewPolicies

MAX_DAILY_SENTENCES = 100_000
MAX_REVIEWERS = 9

review = typer.Typer(no_args_is_help=True, help="Which sentences people are asked about, and what for.")


@review.callback()
def group() -> None:
    """Which sentences people are asked about, and what for."""


@review.command("policy")
def policy(
    *,
    app: Annotated[
        str | None, typer.Option(help="This app; without it, all apps that have no policy of their own.")
    ] = None,
    daily_sentences: Annotated[
        int | None, typer.Option(min=0, max=MAX_DAILY_SENTENCES, help="Sentences to ask about on a day (UTC).")
    ] = None,
    sampled_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="The share of them that are not flagged.")
    ] = None,
    objective: Annotated[
        Objective | None, typer.Option(help="What the threshold is chosen for; needs a --target.")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(help="A share for recall and precision, reviews a miss for cost, flags a day for budget."),
    ] = None,
    attribution_share: Annotated[
        float | None, typer.Option(min=0, max=1, help="The share of answers that may be attributed.")
    ] = None,
    reviewers: Annotated[
        int | None, typer.Option(min=1, max=MAX_REVIEWERS, help="How many people read each sentence.")
    ] = None,
    flag_share: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="The share of the app's sentences, its lowest scores, to flag until labels say better."
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove what was set.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Show as JSON.")] = False,
) -> None:
    """Show what is set. With any of the options, change it for an app, starting from what holds for it.

    It holds from the next batch on. What labels under it could never tell is said on standard error.
    """
    if objective is not None and target is None:
        raise typer.BadParameter("an objective wants a --target", param_hint="--objective")
    wanted = {
        "daily_sentences": daily_sentences,
        "sampled_share": sampled_share,
        "objective": objective,
        "target": target,
        "attribution_share": attribution_share,
        "reviewers": reviewers,
        "flag_share": flag_share,
    }
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    if clear and changes:
        raise typer.BadParameter("nothing can be set and forgotten at once", param_hint="--clear")
    with opened_store("review") as store:
        if clear:
            store.policies.clear(app)
        elif changes:
            store.policies.set(_changed(store.policies.in_force(app), app, changes))
        shown = [store.policies.in_force(app)] if app is not None else _all(store.policies)
    say(_as_json(shown) if json else "\n".join(_lines(shown)))
    for one in shown:
        if one.breaks is not None:
            say(f"{visible(one.app or 'every other app')}: {one.breaks}", err=True)


def _changed(policy: ReviewPolicy, app: str | None, changes: dict[str, Any]) -> ReviewPolicy:
    try:
        return replace(policy, app=app, **changes)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _all(policies: ReviewPolicies) -> list[ReviewPolicy]:
    """That of every other app first, the built-in one if none was set."""
    return [policies.in_force(None), *(one for one in policies.all() if one.app is not None)]


def _lines(shown: Sequence[ReviewPolicy]) -> Iterator[str]:
    yield (
        f"{'app':<24} {'sentences a day':>15} {'sampled share':>13} {'objective':>9} {'target':>8} "
        f"{'attribution share':>17} {'reviewers':>9} {'flag share':>10}"
    )
    for one in shown:
        yield (
            f"{visible(one.app or 'every other app'):<24} {one.daily_sentences:>15} {one.sampled_share:>13g} "
            f"{one.objective:>9} {one.target:>8g} {one.attribution_share:>17g} {one.reviewers:>9} "
            f"{one.flag_share:>10g}"
        )


def _as_json(shown: Sequence[ReviewPolicy]) -> str:
    import orjson

    return orjson.dumps(list(shown), option=orjson.OPT_INDENT_2).decode()
