"""Reading the verdicts back, one row per sentence, as the view v_sentences gives them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from datetime import datetime

from sqlalchemy import column, select, table

from worker.store.repository import Repository

_ROWS_PER_FETCH = 500


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """A sentence of a current answer under one scorer identity.

    ``text`` is the stored answer's ``[start_char, end_char)``; the features are nats per token, None with a
    ``skip_reason``. ``attribution`` is supported, unlocated, none_reacts, waiting, failed or not_wanted.
    ``supporting_passage_ids`` are all passages that stand in for each other, at ``supporting_passage_positions``.
    ``[worst_start, worst_end)`` of the answer are the words that are grounded least, None without a score.
    """

    time: datetime
    app: str
    interaction_id: str
    revision: int
    answer: str
    sentence_index: int
    start_char: int
    end_char: int
    text: str
    kind: str
    score: float | None
    gap: float | None
    jsd_no_context: float | None
    surprisal: float | None
    n_tokens: int
    flagged: bool | None
    skip_reason: str | None
    supporting_passage_id: str | None
    supporting_passage_position: int | None
    supporting_drop: float | None
    contradicting_passage_id: str | None
    contradicting_passage_position: int | None
    contradicting_drop: float | None
    context_window: int | None
    attribution: str
    threshold_version: str | None
    scorer: str
    scorer_id: int
    interaction_pk: int
    supporting_passage_positions: list[int]
    supporting_passage_ids: list[str]
    worst_start: int | None
    worst_end: int | None
    language: str | None
    language_supported: bool | None


_COLUMNS = tuple(field.name for field in fields(SentenceRow))
_view = table("v_sentences", *(column(name) for name in _COLUMNS))


class Sentences(Repository):
    """The verdicts, read back."""

    def rows(
        self,
        *,
        app: str | None = None,
        interaction_ids: Collection[str] | None = None,
        scorer_id: int | None = None,
    ) -> Iterator[SentenceRow]:
        """The sentences in the order in which their answers were stored; a condition left out selects everything.

        Rows arrive in portions while they are taken, so any number of them needs little memory. Holds a connection
        until the iterator is exhausted or closed.
        """
        found = select(*_view.c)
        if app is not None:
            found = found.where(_view.c.app == app)
        if interaction_ids is not None:
            found = found.where(_view.c.interaction_id.in_(list(interaction_ids)))
        if scorer_id is not None:
            found = found.where(_view.c.scorer_id == scorer_id)
        found = found.order_by(_view.c.interaction_pk, _view.c.scorer_id, _view.c.sentence_index)
        with (
            self.database.read() as connection,
            connection.execution_options(yield_per=_ROWS_PER_FETCH).execute(found) as streamed,
        ):
            for row in streamed:
                yield SentenceRow(*row)
