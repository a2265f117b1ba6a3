"""Answers that people labelled, with their texts: what a detector is learned from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from gasp_core.evaluation.data import LabelledAnswer, LabelSpan
from gasp_core.text.marks import said_spans
from worker.store.evidence import LABEL_DAYS, MAX_LABELS, results
from worker.store.interactions import stored_exchanges, stored_marks
from worker.store.repository import Repository, reads
from worker.store.tables import interactions

# Answers whose texts are asked for at once.
ANSWERS_AT_ONCE = 500

_consensus = results.c
_WANTED = ("app", "interaction_id", "interaction_pk", "start_char", "end_char", "selection_probability", "unsupported")


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """The answers, each with its labelled sentences, weighted by how unlikely they were to be asked about.

    The texts are the user's: never log them. ``without_texts`` counts labelled sentences whose answer or passages
    retention has removed, ``without_probability`` those that nobody was asked about, but labelled.
    """

    answers: tuple[LabelledAnswer, ...]
    without_texts: int
    without_probability: int

    @property
    def sentences(self) -> int:
        """How many labelled sentences the answers have."""
        return sum(len(answer.sentences or ()) for answer in self.answers)


class LabelledAnswers(Repository):
    """The answers that people have labelled sentences of."""

    @reads
    def texts(
        self, connection: Connection, app: str | None = None, *, days: int = LABEL_DAYS, limit: int = MAX_LABELS
    ) -> LabelledTexts:
        """What people agreed on in the last days, of one app or of all (None): at most the newest ``limit`` sentences.

        A label belongs to the text, whichever scorer it was asked for. Answers of one interaction are of one source.
        """
        rows = connection.execute(_newest(app, days, limit)).all()
        likely = [row for row in rows if row.selection_probability is not None]
        found: dict[int, dict[tuple[int, int], Row[Any]]] = defaultdict(dict)
        for row in likely:
            if row.interaction_pk is not None:
                # The newest comes first.
                found[row.interaction_pk].setdefault((row.start_char, row.end_char), row)
        gone = sum(row.interaction_pk is None for row in likely)
        answers: list[LabelledAnswer] = []
        pks = list(found)
        for at in range(0, len(pks), ANSWERS_AT_ONCE):
            asked = {pk: found[pk] for pk in pks[at : at + ANSWERS_AT_ONCE]}
            kept = _answers(connection, asked)
            answers += kept.values()
            gone += sum(len(spans) for pk, spans in asked.items() if pk not in kept)
        return LabelledTexts(tuple(answers), gone, len(rows) - len(likely))


def _newest(app: str | None, days: int, limit: int) -> Select[Any]:
    wanted = select(*(_consensus[name] for name in _WANTED)).where(
        _consensus.unsupported.is_not(None),
        _consensus.start_char.is_not(None),
        _consensus.time >= func.now() - timedelta(days=days),
    )
    if app is not None:
        wanted = wanted.where(_consensus.app == app)
    return wanted.order_by(_consensus.time.desc()).limit(limit)


def _answers(
    connection: Connection, labels: Mapping[int, Mapping[tuple[int, int], Row[Any]]]
) -> dict[int, LabelledAnswer]:
    """The answers by primary key; those whose texts are gone are left out."""
    exchanges = stored_exchanges(connection, list(labels))
    marks = select(interactions.c.id, interactions.c.answer_marks).where(interactions.c.id.in_(list(labels)))
    marked = {row.id: stored_marks(row.answer_marks) for row in connection.execute(marks)}
    return {
        pk: LabelledAnswer(str(pk), _source(spans), exchanges[pk], sentences=_spans(spans, marked[pk]))
        for pk, spans in labels.items()
        # A week of passages may be dropped before its interactions are deleted.
        if pk in exchanges and exchanges[pk].passages
    }


def _source(labels: Mapping[tuple[int, int], Row[Any]]) -> str:
    first = next(iter(labels.values()))
    return f"{first.app}/{first.interaction_id}"


def _spans(labels: Mapping[tuple[int, int], Row[Any]], marks: Sequence[tuple[int, int]]) -> tuple[LabelSpan, ...]:
    return tuple(
        LabelSpan(start, end, row.unsupported, weight=1 / row.selection_probability)
        for (start, end), row in zip(said_spans(labels, marks), labels.values(), strict=True)
    )
