"""One step of all its reports: the same whatever their order, and however often they came."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.envelope import JsonObject
from schemas.traces.step import Step, StepKind

# What the reports have in common, and what is put together in a way of its own.
_APART = {"id", "order", "kind", "metadata"}
_FIELDS = tuple(name for name in Step.model_fields if name not in _APART)


def merged_steps(reports: Iterable[Step]) -> list[Step]:
    """Return the steps, each once, in order of their ids."""
    by_id: dict[str, list[Step]] = {}
    for report in reports:
        by_id.setdefault(report.id, []).append(report)
    return [_merged(by_id[step_id]) for step_id in sorted(by_id)]


def _merged(reports: list[Step]) -> Step:
    """Field by field, what the latest report that says it says. Of two that are as late, their content decides."""
    if len(reports) == 1:
        return reports[0]
    latest_first = sorted(reports, key=_precedence, reverse=True)
    said: dict[str, object] = {
        name: next((value for report in latest_first if (value := getattr(report, name)) is not None), None)
        for name in _FIELDS
    }
    return latest_first[0].model_copy(
        update={**said, "kind": _kind(latest_first), "metadata": _metadata(latest_first)},
    )


def _precedence(report: Step) -> tuple[tuple[int, int], str]:
    return report.order, report.model_dump_json()


def _kind(latest_first: list[Step]) -> StepKind | None:
    """A report that knows no kind of step says ``other``, which another report may know better."""
    kinds = [report.kind for report in latest_first if report.kind is not None]
    return next((kind for kind in kinds if kind is not StepKind.OTHER), kinds[0] if kinds else None)


def _metadata(latest_first: list[Step]) -> JsonObject:
    together: JsonObject = {}
    for report in reversed(latest_first):
        together.update(report.metadata)
    return together
