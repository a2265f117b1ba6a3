"""Which token belongs to which sentence, and what becomes of sentences without a score."""

from __future__ import annotations

import pytest
import torch

from gasp_core.features import assign_tokens, sentence_grounding
from gasp_core.grounding import Chunk, Sentence, SentenceSkip, Truncation, UnitKind
from gasp_core.plan import Plan

PROSE = UnitKind.PROSE


def plan_of(tokens: int, groups: tuple[int, ...], kept: tuple[int, ...]) -> Plan:
    prompts = tuple([1] for _ in range(2 + len(groups)))
    hidden: tuple[tuple[tuple[int, int], ...], ...] = tuple(() for _ in prompts)
    removals = tuple((group,) for group in groups)
    spans = [(0, 0)] * tokens
    return Plan(prompts, hidden, removals, 0, list(range(tokens)), spans, kept, Truncation(4, 0, tokens, 0))


def test_a_token_belongs_to_the_sentence_of_its_first_visible_character() -> None:
    answer = "It is. It was."
    sentences = [Sentence(0, 7, PROSE), Sentence(7, 14, PROSE)]
    #        It      _is     .       _It      _was      .
    spans = [(0, 2), (2, 5), (5, 6), (6, 9), (9, 13), (13, 14)]
    assert assign_tokens(answer, sentences, spans) == [[0, 1, 2], [3, 4, 5]]


def test_tokens_that_share_a_character_stay_together() -> None:
    answer = "Hi 👍. Yes."
    sentences = [Sentence(0, 6, PROSE), Sentence(6, 10, PROSE)]
    spans = [(0, 2), (2, 4), (3, 4), (3, 4), (4, 5), (5, 9), (9, 10)]
    assert assign_tokens(answer, sentences, spans) == [[0, 1, 2, 3, 4], [5, 6]]


def test_a_token_of_blanks_belongs_to_where_it_starts() -> None:
    assert assign_tokens("a.\n\nb", [Sentence(0, 4, PROSE), Sentence(4, 5, PROSE)], [(0, 1), (1, 4), (4, 5)]) == [
        [0, 1],
        [2],
    ]


def test_features_of_a_worked_case() -> None:
    log_probabilities = torch.tensor(
        [
            [-1.0, -2.0, -3.0, -9.0],  # whole context
            [-4.0, -4.0, -4.0, -9.0],  # none
            [-1.5, -2.5, -3.5, -9.0],  # without group 0
            [-0.5, -1.5, -2.5, -9.0],  # without group 1: the answer becomes likelier
        ]
    )
    divergences = torch.tensor([[0.0] * 4, [0.3, 0.2, 0.1, 0.0], [0.1] * 4, [0.2] * 4])
    chunks = (Chunk(0, 0, 5, 0), Chunk(1, 0, 5, 1), Chunk(2, 0, 5, 0))
    result = sentence_grounding(
        0,
        Sentence(0, 9, PROSE),
        [0, 1, 2],
        plan=plan_of(4, (0, 1), (0, 1, 2)),
        chunks=chunks,
        log_probabilities=log_probabilities,
        divergences=divergences,
        readings=torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 6.0], [9.0, 9.0]]),
    )
    assert result.readings == (2.0, 2.0)
    assert (result.gap, result.surprisal, result.n_tokens) == (2.0, 2.0, 3)
    assert result.jsd_no_context == pytest.approx(0.2)
    assert [(drop.chunk, drop.drop) for drop in result.drops] == [(0, 0.5), (1, -0.5), (2, 0.5)]
    assert result.drops[1].jsd == pytest.approx(0.2)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_becomes_a_reason(bad: float) -> None:
    scores = torch.zeros(2, 4)
    scores[0, 1] = bad
    result = sentence_grounding(
        0,
        Sentence(0, 9, PROSE),
        [0, 1, 2],
        plan=plan_of(4, (), (0,)),
        chunks=(Chunk(0, 0, 5, 0),),
        log_probabilities=scores,
        divergences=torch.zeros(2, 4),
        readings=torch.zeros(4, 0),
    )
    assert (result.gap, result.skip_reason) == (None, SentenceSkip.NOT_FINITE)
