"""The command ``gasp-worker fit-detector``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gasp_core.detectors.readout.readout import READOUT_SUFFIX
from gasp_core.errors import InputError
from gasp_core.extras import require_extra
from gasp_core.gasp_rag.items import require_writable
from gasp_core.terminal import say
from worker.terminal.database import opened_settings, opened_store

if TYPE_CHECKING:
    from worker.store.labelled_answers import LabelledTexts

# The set that the database's own labels are, among the files'.
LABELS = "labels"


def fit_detector(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DATA]...", help="Files of labelled answers (.jsonl), to learn from, too."),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--out", help="A .safetensors file for the readout.")],
    app: Annotated[str | None, typer.Option(help="Labels of this app only.")] = None,
    layer: Annotated[
        int | None, typer.Option(min=1, help="Read the states after it.", show_default="at two thirds of the depth")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For all that is left to chance.")] = 0,
) -> None:
    """Learn a readout of the model's states from what reviewers labelled, and from files; GASP_DETECTOR_FILE takes it.

    Reads the answers and passages of labelled sentences, and changes nothing in the database.
    """
    require_writable(output, [READOUT_SUFFIX])
    require_extra("evaluation")
    settings = opened_settings()
    from gasp_core.threads import cpu_threads
    from gasp_core.training.command import LabelledSet, TrainRequest, sets_of, train
    from worker.terminal.progress import tracking, waiting

    sets = sets_of(sources or ())
    with waiting("reading labels"), opened_store("fit-detector", settings) as store:
        found = store.labelled_answers.texts(app)
    say(_read(found))
    if not found.answers and not sets:
        raise InputError(LABELS, 0, "there is nothing to learn from; name files of labelled answers")
    if found.answers:
        sets.append(LabelledSet(LABELS, found.answers))
    request = TrainRequest(
        settings.model, settings.device, settings.dtype, revision=settings.model_revision, layer=layer, seed=seed
    )
    with cpu_threads(settings.threads):
        readout, lines = train(sets, request, tracking)
    readout.save(output)
    for line in lines:
        say(line)
    say(f"wrote {output}; GASP_DETECTOR_FILE={output} judges by it")


def _read(found: LabelledTexts) -> str:
    """What was read of the database, for people."""
    left_out = (
        (found.without_texts, "retention has removed their texts"),
        (found.without_probability, "nobody was asked about them, so that their weight is unknown"),
    )
    told = f"{found.sentences} labelled sentences of {len(found.answers)} answers in the database"
    return "; ".join([told, *(f"{count} left out because {why}" for count, why in left_out if count)])
