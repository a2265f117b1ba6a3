"""The ``gasp`` command: score a file of answers, and measure scores against labels, without a service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gasp_core.detectors.readout.readout import READOUT_SUFFIX
from gasp_core.detectors.registry import DETECTORS, detectors_named
from gasp_core.errors import GaspError
from gasp_core.evaluation.data import is_labelled_answers
from gasp_core.evaluation.plot import require_picture
from gasp_core.evaluation.records import records
from gasp_core.evaluation.results import evaluate_results
from gasp_core.extras import require_extra
from gasp_core.gasp_rag.detection import Detection
from gasp_core.gasp_rag.gasp import GASP, GROUP
from gasp_core.gasp_rag.items import read_items, require_writable, write_records
from gasp_core.gasp_rag.sentence_scores import Feature
from gasp_core.packaged import PACKAGED_MODEL
from gasp_core.terminal import say
from gasp_core.threads import cpu_threads
from gasp_core.version import __version__

if TYPE_CHECKING:
    from gasp_core.evaluation.run import ProgressTracker

T = TypeVar("T")

# The detectors that score without learning first.
_READY = tuple(name for name, one in DETECTORS.items() if one.learner is None and one.needs.in_grounding)

# Headings of the options of eval that are for one kind of file.
GASP_RAG = "gasp-rag's own: one of them without --detector gives gasp-rag's numbers"
RESULTS = "For a file of results"
ANSWERS = "For a file of labelled answers"

THREADS = "CPU threads of the model. On a machine that others use, too, 1 can be several times as fast as all of them."
ALL_CORES = "torch's own, one for each core"

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Grounding scores for the sentences of RAG answers.")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        say(f"gasp {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take what comes before a command."""


@app.command()
def detect(
    context: typer.Context,
    *,
    source: Annotated[
        Path, typer.Option("--input", help="A .jsonl or .csv file with context (or passages), answer and query.")
    ],
    output: Annotated[Path, typer.Option(help="A .jsonl or .csv file for the results, one row per sentence.")],
    model: Annotated[str, typer.Option(help="A causal language model by hub name or folder.")] = PACKAGED_MODEL,
    detector: Annotated[
        str | None,
        typer.Option(
            help=f"What gives the score (column sensitivity): {', '.join(_READY)}; or auto, which is the first of"
            " readout and fused that was learned from the model, else fused-free; or a file of `gasp train`.",
            show_default="auto, unless an option of gasp-rag's own is given",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, envvar="GASP_THREADS", help=THREADS, show_default=ALL_CORES)
    ] = None,
    k_chunks: Annotated[
        int, typer.Option(min=1, help="Chunks that a single context is grouped into.", rich_help_panel=GASP_RAG)
    ] = 5,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Flag sentences whose score is below.",
            show_default="the detector's first bound; gasp-rag: none",
            rich_help_panel=GASP_RAG,
        ),
    ] = None,
    economical: Annotated[
        bool,
        typer.Option("--economical", help="Two passes only: quicker, no supporting chunks.", rich_help_panel=GASP_RAG),
    ] = False,
    feature: Annotated[
        Feature, typer.Option(help="The feature reported as sensitivity.", rich_help_panel=GASP_RAG)
    ] = Feature.MAX_DROP,
    max_ctx_tokens: Annotated[
        int,
        typer.Option(
            min=1, help="Context tokens that are read.", show_default="all; gasp-rag: 1800", rich_help_panel=GASP_RAG
        ),
    ] = 1800,
    max_ans_tokens: Annotated[
        int,
        typer.Option(
            min=1, help="Answer tokens that are scored.", show_default="all; gasp-rag: 256", rich_help_panel=GASP_RAG
        ),
    ] = 256,
) -> None:
    """Score every sentence of every answer in a file.

    The score is that of --detector. With neither that nor an option of gasp-rag's own it is the best detector that
    the model admits: readout for the packaged model, else fused-free, for which a model that is new reads a reference
    set of 36 exchanges first. With one of those options, even at its default, and no
    --detector, it is what gasp-rag reports: --feature under gasp-rag's defaults.
    """
    # A wrong path is better known before the hours of scoring than after.
    require_writable(output)
    items = read_items(source)
    own = {
        "k_chunks": k_chunks,
        "threshold": threshold,
        "economical": economical,
        "feature": feature,
        "max_ctx_tokens": max_ctx_tokens,
        "max_ans_tokens": max_ans_tokens,
    }
    given: dict[str, Any] = {name: value for name, value in own.items() if _is_given(context, name)}
    if "feature" in given:
        given["sensitivity_feature"] = given.pop("feature")
    with cpu_threads(threads):
        with Console(stderr=True).status("loading the model; for some detectors a new one reads a reference set first"):
            gasp = GASP(model, device=device, dtype=dtype, detector=detector, **given)
        detections = _detect_all(gasp, items)
    rows = [
        record
        for number, (item, detection) in enumerate(zip(items, detections, strict=True))
        for record in records(number, item, detection)
    ]
    write_records(rows, output)
    empty = sum(not detection.sentences for detection in detections)
    without_row = f" ({empty} empty and without a row)" if empty else ""
    say(f"wrote {len(rows)} sentence results from {len(items)} answers{without_row} to {output}")


@app.command("eval")
def evaluate_file(
    context: typer.Context,
    source: Annotated[
        Path | None,
        typer.Argument(help="A file of labelled answers (.jsonl), or of results with labels (.jsonl, .csv)."),
    ] = None,
    *,
    source_option: Annotated[Path | None, typer.Option("--input", help="The same file, named by an option.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
    label_col: Annotated[
        str, typer.Option(help="The column with 1 for unsupported, 0 for grounded.", rich_help_panel=RESULTS)
    ] = "label",
    score_col: Annotated[
        str, typer.Option(help="The column with the sensitivity: low is suspect.", rich_help_panel=RESULTS)
    ] = "sensitivity",
    threshold: Annotated[
        float | None, typer.Option(help="Also measure flagging what is below.", rich_help_panel=RESULTS)
    ] = None,
    detector: Annotated[
        str, typer.Option(help="Detectors by name, with commas between.", rich_help_panel=ANSWERS)
    ] = "",
    model: Annotated[
        str, typer.Option(help="A causal language model by hub name or folder.", rich_help_panel=ANSWERS)
    ] = PACKAGED_MODEL,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.", rich_help_panel=ANSWERS)] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.", rich_help_panel=ANSWERS)] = "auto",
    threads: Annotated[
        int | None,
        typer.Option(min=1, envvar="GASP_THREADS", help=THREADS, show_default=ALL_CORES, rich_help_panel=ANSWERS),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Answers to take, drawn at random.", rich_help_panel=ANSWERS)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For all that is left to chance.", rich_help_panel=ANSWERS)] = 0,
    resamples: Annotated[
        int, typer.Option(min=1, help="Resamples of sources that intervals are made of.", rich_help_panel=ANSWERS)
    ] = 1_000,
    any_scorer: Annotated[
        bool,
        typer.Option(
            "--any-scorer", help="Use coefficients for scores that they were not fitted to.", rich_help_panel=ANSWERS
        ),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="A .png file for curves and histograms.", rich_help_panel=ANSWERS)
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="Another model to compare with, by hub name or folder: a token classifier such as LettuceDetect, an"
            " NLI model or cross-encoder, MiniCheck or HHEM-2.1-Open. May be given several times.",
            show_default=False,
            rich_help_panel=ANSWERS,
        ),
    ] = None,
    attribution: Annotated[
        bool,
        typer.Option("--attribution", help="Compare supporting chunks with best matches.", rich_help_panel=ANSWERS),
    ] = False,
) -> None:
    """Measure how well scores in a file of results, or detectors on labelled answers, find what is unsupported."""
    path = _one_path(source, source_option)
    if not is_labelled_answers(path):
        _refuse_options(context, ANSWERS, "a file of results")
        for line in evaluate_results(
            path, label_column=label_col, score_column=score_col, threshold=threshold, as_json=as_json
        ):
            say(line)
        return
    _refuse_options(context, RESULTS, "a file of labelled answers")
    names = tuple(name.strip() for name in detector.split(",") if name.strip())
    detectors_named(names)  # here already, because torch takes seconds to import
    if plot is not None:
        require_picture(plot)
    require_extra("evaluation")
    from gasp_core.evaluation.command import (  # imports torch, which --help can spare
        EvaluationRequest,
        evaluate_answers,
    )
    from gasp_core.evaluation.run import EvaluationConfig

    request = EvaluationRequest(
        detectors=names,
        model=model,
        device=device,
        dtype=dtype,
        config=EvaluationConfig(limit=limit, seed=seed, n_resamples=resamples, any_scorer=any_scorer),
        peers=tuple(peer or ()),
        plot=plot,
        attribution=attribution,
        as_json=as_json,
    )
    with cpu_threads(threads):
        for line in evaluate_answers(path, request, _tracking):
            say(line)


@app.command()
def train(
    sources: Annotated[list[Path], typer.Argument(help="Files of labelled answers (.jsonl).")],
    *,
    output: Annotated[Path, typer.Option("--out", help="A .safetensors file for the readout.")],
    model: Annotated[str, typer.Option(help="A causal language model by hub name or folder.")] = PACKAGED_MODEL,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, envvar="GASP_THREADS", help=THREADS, show_default=ALL_CORES)
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=1, help="Read the states after it.", show_default="at two thirds of the depth")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For all that is left to chance.")] = 0,
) -> None:
    """Learn a readout of the model's states from labelled answers, to detect and judge by.

    `gasp detect` and `gasp eval` take the file as a --detector, the worker as GASP_DETECTOR_FILE. What the model
    says of an answer is kept in the cache.
    """
    require_writable(output, [READOUT_SUFFIX])
    require_extra("evaluation")
    from gasp_core.training.command import TrainRequest, sets_of, train  # imports torch, which --help can spare

    request = TrainRequest(model=model, device=device, dtype=dtype, layer=layer, seed=seed)
    with cpu_threads(threads):
        readout, lines = train(sets_of(sources), request, _tracking)
    readout.save(output)
    for line in lines:
        say(line)
    say(f"wrote {output}")


def _one_path(argument: Path | None, option: Path | None) -> Path:
    path = argument or option
    if path is None or (argument is not None and option is not None):
        raise typer.BadParameter("name one file")
    return path


def _refuse_options(context: typer.Context, panel: str, what: str) -> None:
    """Say so if an option was given that means nothing for this file."""
    for parameter in context.command.params:
        if _is_given(context, parameter.name or "") and getattr(parameter, "rich_help_panel", None) == panel:
            raise typer.BadParameter(f"{parameter.opts[0]} is of no use: it is {what}")


def _is_given(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line, be it with its default."""
    origin = context.get_parameter_source(name)
    return origin is not None and origin.name == "COMMANDLINE"


def _detect_all(gasp: GASP, items: list[dict[str, Any]]) -> list[Detection]:
    detections: list[Detection] = []
    with _progress() as progress:
        task = progress.add_task("scoring", total=len(items))
        for start in range(0, len(items), GROUP):
            detections += gasp.detect_batch(items[start : start + GROUP])
            progress.update(task, completed=len(detections))
    return detections


@contextmanager
def _tracking(description: str) -> Iterator[ProgressTracker]:
    """Show how far a task is."""
    with _progress() as progress:

        def track(items: Iterable[T], total: int) -> Iterable[T]:
            return progress.track(items, total=total, description=description)

        yield track


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def main() -> None:
    """Run the command; an error that we know ends it with one line that says what to do."""
    try:
        app()
    except GaspError as error:
        say(f"gasp: {error}", err=True)
        raise SystemExit(2) from None
