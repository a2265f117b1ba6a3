"""The commands ``gasp-worker labels …``."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from gasp_core.terminal import say, visible
from worker.errors import InputFileError
from worker.review.formats import LabelFormat
from worker.terminal.database import opened_store
from worker.terminal.files import require_file

if TYPE_CHECKING:
    from worker.review.label_import import Reject
    from worker.rules.agreement import Agreement

TOLD_REJECTS = 20

labels = typer.Typer(
    no_args_is_help=True, help="What reviewers said: read labels from files, see how far reviewers agree."
)


@labels.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="A CSV table, JSON lines, or the JSON export of Label Studio.")],
    *,
    form: Annotated[LabelFormat, typer.Option("--format", help="Default: found from how the file begins.")] = (
        LabelFormat.AUTO
    ),
    tool: Annotated[
        str | None,
        typer.Option(help="The tool that the labels come from; a judgement is known by its tool and external id."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Store nothing; say what would become of each.")] = False,
    rejects: Annotated[Path | None, typer.Option(help="Write every refused row's number and reason there.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The counts as JSON.")] = False,
) -> None:
    """Read the labels of a file. A bad row is listed with its line and reason, and the others are stored.

    Safe to repeat: a label that is there already changes nothing. Ends with status 1 if rows were refused.
    """
    require_file(file)
    from worker.review.label_file import read_label_file
    from worker.review.label_import import REJECTED, import_labels
    from worker.terminal.progress import bytes_progress

    with ExitStack() as stack:
        store = stack.enter_context(opened_store("labels"))
        on_reject = _teller(stack.enter_context(_written(rejects)) if rejects else None)
        counts = import_labels(
            read_label_file(file, form),
            store.labels,
            on_reject=on_reject,
            on_bytes=stack.enter_context(bytes_progress("importing", file.stat().st_size)),
            tool=tool,
            dry_run=dry_run,
        )
    say(json_format.dumps(counts) if json else _counts(counts, dry_run=dry_run))
    raise typer.Exit(1 if counts.get(REJECTED) else 0)


@labels.command()
def agreement(
    *,
    app: Annotated[str | None, typer.Option(help="This app only.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Show how far reviewers agree (Krippendorff's alpha): in each app, all of them, then each pair."""
    from worker.rules.agreement import agreements

    with opened_store("labels") as store:
        found = agreements(store.votes.last(app))
    for one in found:
        say(json_format.dumps(asdict(one)) if json else _agreement(one))
    if not found and not json:
        say("no sentence has labels of two reviewers")


def _teller(file: TextIO | None) -> Callable[[Reject], None]:
    """Tells the first refused rows on standard error, and all of them in the file."""
    told = 0

    def tell(reject: Reject) -> None:
        nonlocal told
        told += 1
        if told <= TOLD_REJECTS:
            say(f"line {reject.number}: {reject.reason}: {reject.detail}", err=True)
        elif told == TOLD_REJECTS + 1:
            say("more rows are refused; --rejects FILE lists them all", err=True)
        if file is not None:
            file.write(json_format.dumps({"line": reject.number, "reason": reject.reason, "detail": reject.detail}))
            file.write("\n")

    return tell


def _counts(counts: dict[str, int], *, dry_run: bool) -> str:
    listed = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "no labels"
    return f"{'would be: ' if dry_run else ''}{listed}"


def _agreement(one: Agreement) -> str:
    who = "all reviewers" if one.pair is None else " and ".join(map(visible, one.pair))
    alpha, words = (f"{value:.3f}" if value is not None else "unknown" for value in (one.alpha, one.alpha_of_words))
    agreed = f"{one.agreed} of {one.sentences} sentences agreed"
    return f"{visible(one.app)}: {who}: {agreed}, alpha {alpha} ({words} over the five labels)"


@contextmanager
def _written(path: Path) -> Iterator[TextIO]:
    try:
        with path.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise InputFileError(f"{path}: {error.strerror}") from error
