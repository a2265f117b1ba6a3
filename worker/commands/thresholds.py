"""The commands ``gasp-worker thresholds …``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.terminal import say
from worker.errors import WorkerError
from worker.terminal.apps import require_known_app
from worker.terminal.database import opened_store

if TYPE_CHECKING:
    from worker.rules.refit.correction import Correction
    from worker.store.scorers import Scorers
    from worker.store.threshold_versions import Version
    from worker.store.thresholds import Thresholds

thresholds = typer.Typer(
    no_args_is_help=True,
    help="Threshold versions: list them, see what one would change, put one in force. Workers follow at once.",
)

App = Annotated[str | None, typer.Option(help="This app; without it, all apps that have no version of their own.")]
Scorer = Annotated[str | None, typer.Option(help="A scorer's label or id; needed if there are several.")]
By = Annotated[str, typer.Option(envvar="USER", help="Your name, for the history.")]
Number = Annotated[int, typer.Argument(metavar="ID", help="The version's id, as `thresholds list` shows it.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@thresholds.command("list")
def list_versions(*, json: Json = False) -> None:
    """List every version; those in force are marked with a star."""
    from worker.commands.threshold_page import as_json, version_facts, version_line

    with opened_store("thresholds") as store:
        for version in store.thresholds.versions():
            say(as_json(version_facts(version)) if json else version_line(version))


@thresholds.command()
def history(*, json: Json = False) -> None:
    """List which version came into force when, why and by whom, old before new."""
    from worker.commands.threshold_page import activation_facts, activation_line, as_json

    with opened_store("thresholds") as store:
        for entered in store.thresholds.activations():
            say(as_json(activation_facts(entered)) if json else activation_line(entered))


@thresholds.command()
def preview(
    number: Annotated[
        int | None, typer.Argument(metavar="[ID]", help="A stored version; or give --flag-below.")
    ] = None,
    *,
    app: App = None,
    flag_below: Annotated[float | None, typer.Option(help="A threshold that is not stored.")] = None,
    scorer: Scorer = None,
    json: Json = False,
) -> None:
    """Say for how many of last week's sentences a version, or --flag-below, would change the flag; show some."""
    if number is not None and (flag_below is not None or app is not None):
        raise typer.BadParameter("give either a version's id or --flag-below with --app")
    if number is None and flag_below is None:
        raise typer.BadParameter(
            "give a version's id, as `thresholds list` shows it, or --flag-below with a score to try (and --app)"
        )
    bound = _finite(flag_below, "--flag-below") if number is None else 0.0
    from worker.commands.threshold_page import as_json, preview_facts, preview_lines

    with opened_store("thresholds") as store:
        if number is not None:
            chosen = _version(store.thresholds, number)
            app, scorer_id, bound, correction = chosen.app, chosen.scorer_id, chosen.flag_below, chosen.correction
        else:
            scorer_id = _scorer_id(store.scorers, scorer)
            correction = _correction_in_force(store.thresholds, app, scorer_id)
        found = store.previews.flagging_below(app, scorer_id, bound, correction)
        if app is not None and not found.sentences:
            require_known_app(store.interactions, app)
    for line in [as_json(preview_facts(found))] if json else preview_lines(found, app):
        say(line)


@thresholds.command()
def activate(number: Number, *, by: By = "command", json: Json = False) -> None:
    """Put a version in force in place of its app's present one."""
    with opened_store("thresholds") as store:
        _version(store.thresholds, number)
        activated = store.thresholds.activate(number, by)
        _say(activated or _version(store.thresholds, number), "is in force", json=json)


@thresholds.command()
def rollback(*, app: App = None, scorer: Scorer = None, by: By = "command", json: Json = False) -> None:
    """Put the version in force that was in force before. After an app's first version comes the one for all apps."""
    with opened_store("thresholds") as store:
        done = store.thresholds.roll_back(app, _scorer_id(store.scorers, scorer), by)
        if done is None:
            why = "has no version of its own in force" if app else "is in force with its first version"
            raise WorkerError(f"there is nothing to roll back: {app or 'the default'} {why}")
        if done.back_to is None:
            _say(done.left, "is not in force any more; the default is", json=json)
        else:
            _say(done.back_to, f"is in force again, instead of {done.left.name}", json=json)


@thresholds.command("set")
def set_version(
    *,
    flag_below: Annotated[float, typer.Option(help="Sentences that score below it are flagged.")],
    attribute_below: Annotated[
        float | None, typer.Option(help="Answers with a sentence below it are attributed; default: the same.")
    ] = None,
    note: Annotated[str, typer.Option(help="Where the thresholds come from.")],
    app: App = None,
    scorer: Scorer = None,
    by: By = "command",
    inactive: Annotated[bool, typer.Option("--inactive", help="Only store it, to be previewed and activated.")] = False,
    json: Json = False,
) -> None:
    """Store a new version and put it in force. The schedule leaves it in force for seven days at least.

    It keeps the correction in force: the bounds are of scores as the views show them.
    """
    lower = _finite(flag_below, "--flag-below")
    upper = lower if attribute_below is None else _finite(attribute_below, "--attribute-below")
    if upper < lower:
        raise typer.BadParameter("it cannot be below --flag-below", param_hint="--attribute-below")
    from worker.rules.verdict import MANUAL
    from worker.store.threshold_versions import Proposal

    with opened_store("thresholds") as store:
        scorer_id = _scorer_id(store.scorers, scorer)
        correction = _correction_in_force(store.thresholds, app, scorer_id)
        proposal = Proposal(app, scorer_id, lower, upper, MANUAL, note, correction=correction)
        if inactive:
            _say(store.thresholds.add(proposal), "is stored", json=json)
        else:
            _say(store.thresholds.set_by_hand(proposal, by), "is in force", json=json)


def _say(version: Version, what: str, *, json: bool) -> None:
    from worker.commands.threshold_page import as_json, version_facts

    say(as_json(version_facts(version)) if json else f"{version.name} (id {version.id}) {what}")


def _version(stored: Thresholds, number: int) -> Version:
    for version in stored.versions():
        if version.id == number:
            return version
    raise WorkerError(f"there is no version with the id {number}; `gasp-worker thresholds list` has them")


def _correction_in_force(stored: Thresholds, app: str | None, scorer_id: int) -> Correction | None:
    """What the app's scores are corrected by now; without an app, those of apps that have no version of their own."""
    in_force = stored.in_force(scorer_id, [] if app is None else [app])
    present = in_force.get(app) or in_force.get(None)
    return None if present is None else present.correction


def _scorer_id(scorers: Scorers, wanted: str | None) -> int:
    """The scorer with this label or id, or the only one. Raises WorkerError with those to choose from."""
    from worker.store.scorers import choose_scorer

    known = scorers.known()
    if wanted is None and len(known) == 1:
        return known[0].id
    if wanted is None and known:
        choices = (f"{one.id:>4}  {one.label}" for one in known)
        raise WorkerError("\n".join(["there are several scorers, name one with --scorer:", *choices]))
    return choose_scorer(known, wanted or "").id


def _finite(value: float | None, option: str) -> float:
    if value is None or not math.isfinite(value):
        raise typer.BadParameter("a number is wanted", param_hint=option)
    return value
