"""A simulated year of review: do recalibrated thresholds keep what they promise?

    python -m tests.benchmarks.calibration [--runs 200] [--habit-runs 40] [--reviewers 2] [--seed 0] [--folder FOLDER]
        [--json PATH]

Two apps answer questions with real scores and human labels, one from each data file, at different shares of bad
answers; at mid-year the one gets worse and the other better. Sentences are asked about as worker.rules.selection says,
two reviewers and, where they differ, a third answer as the human labels do, each wrong in 3 of 100, and on every
thirtieth day the threshold is recalibrated. What a threshold achieves is looked up in all the traffic of the day, which
no method sees. Compared are the seeded threshold, recalibration on labels of flagged sentences alone as if they were
the traffic, and ours, at the first recalibration with 300 labelled sentences and at the end of the year.

So far everything is answered at once. In more years, for recall and ours, reviewers have habits: they read a part, the
lowest first or all in one sitting, they get tired, or there is much more on some days (calibration_reviewers.py).
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track

from tests.benchmarks.calibration_grades import METHODS, OBJECTIVES, Grade, cells, figures, summary, table
from tests.benchmarks.calibration_reviewers import HABITS
from tests.benchmarks.calibration_traffic import made_up, read
from tests.benchmarks.calibration_year import habitual_year, year
from tests.benchmarks.labelled_scores import FILES, FOLDER
from worker.rules.policy import Objective

REPORT = Path("build/bench/calibration.json")


def main(
    runs: Annotated[int, typer.Option(min=1, help="Simulated years for each objective.")] = 200,
    habit_runs: Annotated[int, typer.Option(min=0, help="Simulated years for each habit of reviewers.")] = 40,
    reviewers: Annotated[int, typer.Option(min=1, max=2, help="Who read a sentence before a third settles it.")] = 2,
    seed: Annotated[int, typer.Option(help="What the years are drawn with.")] = 0,
    folder: Annotated[Path, typer.Option(help="Where the labelled answers are.")] = FOLDER,
    report: Annotated[
        Path, typer.Option("--json", help="Where the figures go; every grade lies beside them.")
    ] = REPORT,
    synthetic: Annotated[bool, typer.Option(help="Made-up scores, to try the script.")] = False,  # noqa: FBT002 - a flag
) -> None:
    """Simulate, print the table and write the figures."""
    pools = [made_up(name) if synthetic else read(folder, name) for name in FILES]
    jobs = [(pools, objective, reviewers, seed, run) for objective in OBJECTIVES for run in range(runs)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        years = pool.map(year, *zip(*jobs, strict=True), chunksize=4)
        grades = [one for some in track(years, total=len(jobs), description="years") for one in some]
        habitual = [(pools, Objective.RECALL, kind, seed, run) for kind in HABITS for run in range(habit_runs)]
        lived = pool.map(habitual_year, *zip(*habitual, strict=True), chunksize=4) if habitual else iter(())
        by_year = list(track(lived, total=len(habitual), description="habits"))
    result = figures_of(grades)
    result["reviewers"] = {
        kind: figures([one for job, some in zip(habitual, by_year, strict=True) if job[2] == kind for one in some])
        for kind in (HABITS if habitual else ())
    }
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    lines = "".join(json.dumps(asdict(one)) + "\n" for one in grades)
    report.with_suffix(".jsonl").write_text(lines, encoding="utf-8")
    show(result)


def figures_of(grades: list[Grade]) -> dict[str, Any]:
    """All figures: by method, by objective and method, and in full."""
    by_objective = {
        str(objective): summary(one for one in grades if one.objective == objective) for objective in OBJECTIVES
    }
    by_moment = {moment: summary(one for one in grades if one.moment == moment) for moment in ("first", "last")}
    return summary(grades) | {"by_objective": by_objective, "by_moment": by_moment, "cells": list(cells(grades))}


def show(result: dict[str, Any]) -> None:
    """The tables."""
    console = Console(width=150)
    console.print(table(result["cells"]))
    for name, by_method in [*result["by_objective"].items(), *result["by_moment"].items(), ("all", result)]:
        for method in METHODS:
            of = by_method[method]
            print(
                f"{name:<10} {method:<7} reached {of['reached_rate']:.3f} hit {of['hit_rate']:.3f} "
                f"covers {of['coverage']:.3f} {of['reasons']}"
            )
    for kind, of in result["reviewers"].items():
        print(f"{kind:<18} hit {of['hit_rate']:.3f} covers {of['coverage']:.3f} {of['reasons']}")


if __name__ == "__main__":
    typer.run(main)
