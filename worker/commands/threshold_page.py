"""Threshold versions, previews and recalibrations as lines for a person, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from gasp_core.terminal import visible
from worker.jobs.recalibration import AppRecalibration
from worker.rules.refit.correction import Correction
from worker.rules.verdict import ALL_APPS
from worker.store.preview import Preview
from worker.store.threshold_versions import Activation, Version

MAX_TEXT_CHARS = 120

Facts = dict[str, object]


def as_json(facts: Facts) -> str:
    """In one line of ASCII."""
    return json.dumps(facts)


def version_line(version: Version) -> str:
    """One version; a star marks the one in force."""
    star = "*" if version.is_active else " "
    bounds = f"flag below {version.flag_below:<8.4g} attribute below {version.attribute_below:<8.4g}"
    how = version.learned_from if version.correction is None else f"{version.learned_from}, corrected"
    told = f"{how}, {_time(version.created_at)}, scorer {version.scorer_id}"
    return f"{star} {version.id:>4}  {visible(version.name):<24} {bounds} {told}  {visible(version.note or '')}"


def version_facts(version: Version) -> Facts:
    """What is stored of it."""
    return {
        "id": version.id,
        "name": version.name,
        "app": version.app,
        "scorer_id": version.scorer_id,
        "version": version.version,
        "flag_below": version.flag_below,
        "attribute_below": version.attribute_below,
        "learned_from": version.learned_from,
        "note": version.note,
        "created_at": version.created_at.isoformat(),
        "activated_at": None if version.activated_at is None else version.activated_at.isoformat(),
        "is_active": version.is_active,
        "curve": None if version.curve is None else version.curve.to_json(),
        "correction": None if version.correction is None else version.correction.to_json(),
    }


def activation_line(entered: Activation) -> str:
    """One change of what is in force."""
    version = entered.version
    what = "the default again, instead of " if entered.reason == "withdrawn" else ""
    bound = f"flag below {version.flag_below:.4g}{'' if version.correction is None else ', corrected'}"
    by = f"{entered.reason} by {visible(entered.activated_by)}"
    return f"{_time(entered.activated_at)}  {what}{visible(version.name)} (id {version.id}, {bound})  {by}"


def activation_facts(entered: Activation) -> Facts:
    """What is stored of it, and the version's name."""
    return {
        "activated_at": entered.activated_at.isoformat(),
        "id": entered.version.id,
        "name": entered.version.name,
        "scorer_id": entered.version.scorer_id,
        "reason": entered.reason,
        "activated_by": entered.activated_by,
        "has_correction": entered.version.correction is not None,
    }


def preview_lines(found: Preview, app: str | None) -> Iterator[str]:
    """The counts, and the sample with its text, cut and without anything that a terminal would act on."""
    yield preview_line(found)
    if found.without_terms:
        yield f"of {found.without_terms} nobody knows: an earlier release stored no terms of them"
    if not found.sentences:
        of = f"the app {visible(app)}" if app else "apps without a version of their own"
        yield f"this scorer has scored no sentence of {of} in the last seven days"
    for one in found.sample:
        change = f"score {one.score:.4f} " + ("would pass" if one.flagged else "would be flagged")
        yield f"  {visible(one.app)} {visible(one.interaction_id)} [{one.sentence_index}] {change}"
        yield f"    {visible(' '.join(one.text.split()))[:MAX_TEXT_CHARS]}"


def preview_line(found: Preview) -> str:
    """The counts."""
    return (
        f"last week: {found.sentences} sentences, {found.flagged} flagged; "
        f"{found.newly_flagged} more would be, {found.no_longer_flagged} no longer"
    )


def preview_facts(found: Preview) -> Facts:
    """The counts and the sample."""
    return {
        **_counts(found),
        "sample": [
            {
                "app": one.app,
                "interaction_id": one.interaction_id,
                "sentence_index": one.sentence_index,
                "score": one.score,
                "flagged": one.flagged,
                "text": one.text,
            }
            for one in found.sample
        ],
    }


def finding_lines(finding: AppRecalibration, previewed: Preview | None) -> Iterator[str]:
    """The outcome for one app and scorer, and a table of the numbers."""
    result = finding.result
    added = "" if finding.added is None else f", {finding.added.name} is in force"
    yield f"{visible(finding.app or ALL_APPS)}, scorer {finding.scorer_id}: {result.outcome} ({result.reason}){added}"
    yield f"  {'flag_below':<22} {finding.in_force.flag_below:.4g} -> {result.flag_below:.4g}"
    yield f"  {'attribute_below':<22} {finding.in_force.attribute_below:.4g} -> {result.attribute_below:.4g}"
    yield f"  {'correction':<22} {_correction(finding.in_force.correction)} -> {_correction(finding.correction)}"
    for name, value in result.numbers.items():
        if name != "app" and value is not None:
            yield f"  {name:<22} {f'{value:.4g}' if isinstance(value, float) else value}"
    if previewed is not None:
        yield f"  {preview_line(previewed)}"


def finding_facts(finding: AppRecalibration, previewed: Preview | None) -> Facts:
    """The outcome for one app and scorer."""
    result = finding.result
    return {
        "app": finding.app,
        "scorer_id": finding.scorer_id,
        "outcome": result.outcome,
        "reason": result.reason,
        "in_force": finding.in_force.name,
        "added": None if finding.added is None else finding.added.name,
        "flag_below": result.flag_below,
        "attribute_below": result.attribute_below,
        "correction": None if finding.correction is None else finding.correction.to_json(),
        "numbers": result.numbers,
        "preview": None if previewed is None else _counts(previewed),
    }


def _correction(correction: Correction | None) -> str:
    """The three terms that a usual change of moves the score most."""
    if correction is None:
        return "none"
    most = sorted(correction.terms, key=lambda term: -abs(term.coefficient))[:3]
    return ", ".join(f"{term.name} {term.coefficient:+.3g}" for term in most)


def _counts(found: Preview) -> Facts:
    return {
        "sentences": found.sentences,
        "flagged": found.flagged,
        "newly_flagged": found.newly_flagged,
        "no_longer_flagged": found.no_longer_flagged,
        "without_terms": found.without_terms,
    }


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
