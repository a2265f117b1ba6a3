"""Numbers of the scores: worked by hand, by property, and tile by tile."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gasp_core import divergence
from gasp_core.divergence import jensen_shannon, token_scores

LOGITS = st.lists(st.floats(-30, 30), min_size=5, max_size=5)


def log_distribution(logits: list[float]) -> torch.Tensor:
    return torch.log_softmax(torch.tensor(logits), dim=-1)


def test_the_divergence_of_a_worked_case_is_right() -> None:
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.9, 0.1])
    # M = (0.7, 0.3): half of 0.5 ln(5/7) + 0.5 ln(5/3), plus half of 0.9 ln(9/7) + 0.1 ln(1/3).
    expected = 0.5 * (0.5 * math.log(5 / 7) + 0.5 * math.log(5 / 3)) + 0.5 * (
        0.9 * math.log(9 / 7) + 0.1 * math.log(1 / 3)
    )
    assert jensen_shannon(p.log(), q.log()).item() == pytest.approx(expected, abs=1e-7)


def test_disjoint_distributions_diverge_by_ln_2() -> None:
    p, q = log_distribution([80.0, -80.0]), log_distribution([-80.0, 80.0])
    assert jensen_shannon(p, q).item() == pytest.approx(math.log(2), abs=1e-6)


@given(LOGITS)
def test_a_distribution_does_not_diverge_from_itself(logits: list[float]) -> None:
    p = log_distribution(logits)
    assert 0.0 <= jensen_shannon(p, p).item() < 1e-6


def test_a_large_distribution_does_not_diverge_from_itself() -> None:
    p = torch.log_softmax(torch.randn(32, 50_000, generator=torch.Generator().manual_seed(1)) * 8, dim=-1)
    assert jensen_shannon(p, p).max().item() < 1e-6


@given(LOGITS, LOGITS)
def test_the_divergence_is_symmetric_and_bounded(left: list[float], right: list[float]) -> None:
    p, q = log_distribution(left), log_distribution(right)
    assert 0.0 <= jensen_shannon(p, q).item() <= math.log(2) + 1e-7  # ln 2 as float32 is a little more
    assert jensen_shannon(p, q).item() == pytest.approx(jensen_shannon(q, p).item(), abs=1e-6)


def test_token_scores_do_not_depend_on_the_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(2)
    weight = torch.randn(50, 8, generator=generator)
    states = torch.randn(3, 7, 8, generator=generator)
    answer = torch.randint(0, 50, (7,), generator=generator)

    def head(hidden: torch.Tensor) -> torch.Tensor:
        return hidden @ weight.T

    whole = token_scores(head, 50, states, answer)
    monkeypatch.setattr(divergence, "CPU_TILE_BYTES", 4 * 50 * 3)
    monkeypatch.setattr(divergence, "CPU_BLOCK_BYTES", 4 * 50 * 2)
    tiled = token_scores(head, 50, states, answer)
    torch.testing.assert_close(whole, tiled)
    expected = torch.log_softmax(head(states[1]), -1)[torch.arange(7), answer]
    torch.testing.assert_close(whole[0][1], expected)
    assert whole[1][0].abs().max().item() == 0.0
