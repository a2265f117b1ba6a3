"""What is read inside the network: the states that transformers itself gives of a layer, however the passes are run."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gasp_core.errors import ModelUnsupported
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import choose_passes
from gasp_core.passes.plain import PlainPasses
from gasp_core.passes.taps import Tap
from gasp_core.scorer import GroundingScorer
from tests.unit.scoring.test_passes import DOGS, MUSEUM, REFUND, plans_of, states_of


def tap_of(model: LanguageModel, layer: int, numbers: int = 3) -> Tap:
    generator = torch.Generator().manual_seed(0)
    return Tap(layer, torch.randn(model.width, numbers, generator=generator), torch.randn(numbers, generator=generator))


@torch.inference_mode()
def own_states(model: LanguageModel, ids: list[int], layer: int) -> torch.Tensor:
    """What transformers says the states (S, D) after a layer are."""
    told = model.network.base_model(torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
    states: torch.Tensor = told[layer][0]
    return states


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma", "gpt2", "gemma2", "mistral-sliding", "doge"])
def test_a_tap_reads_the_states_of_its_layer(family: str, tiny_model_of: Callable[[str], LanguageModel]) -> None:
    model = tiny_model_of(family)
    # The states after the last layer are given behind the last norm there.
    tap, whole = tap_of(model, 1), Tap(1)
    plans = plans_of(model, MUSEUM, REFUND, DOGS)
    passes = choose_passes(model).passes.reading([tap, whole])
    plain = choose_passes(model).passes
    for plan, read, final in zip(plans, states_of(passes, plans), states_of(plain, plans), strict=True):
        torch.testing.assert_close(read[..., : model.width], final)
        for variant, prompt in enumerate(plan.prompts):
            expected = own_states(model, [*prompt, *plan.answer_ids[:-1]], 1)[-len(plan.answer_ids) :]
            found = read[variant, :, model.width :]
            torch.testing.assert_close(found[:, 3:], expected, atol=2e-5, rtol=1e-4)
            torch.testing.assert_close(found[:, :3], tap.read(expected), atol=2e-4, rtol=1e-4)


def test_whole_prompts_give_the_same_readings(tiny_model: LanguageModel) -> None:
    tap = tap_of(tiny_model, 2)
    plans = plans_of(tiny_model, MUSEUM, REFUND)
    shared = states_of(choose_passes(tiny_model, max_tokens=7).passes.reading([tap]), plans)
    for one, whole in zip(shared, states_of(PlainPasses(tiny_model, 500, [tap]), plans), strict=True):
        torch.testing.assert_close(one, whole, atol=2e-4, rtol=1e-4)


def test_sentences_carry_the_mean_of_their_tokens(tiny_model: LanguageModel) -> None:
    taps = [tap_of(tiny_model, 1), tap_of(tiny_model, 2, numbers=2)]
    plain = GroundingScorer(tiny_model).score([MUSEUM, DOGS])
    read = GroundingScorer(tiny_model).reading(taps).score([MUSEUM, DOGS])
    for before, after in zip(plain, read, strict=True):
        for one, other in zip(before.sentences, after.sentences, strict=True):
            assert one.readings == ()
            assert len(other.readings) == (5 if other.gap is not None else 0)
            assert other.gap == pytest.approx(one.gap, abs=1e-5) if one.gap is not None else other.gap is None


@pytest.mark.parametrize("layer", [0, 99])
def test_a_layer_that_is_not_there_is_refused(tiny_model: LanguageModel, layer: int) -> None:
    with pytest.raises(ModelUnsupported, match="layers, and another one is to be read"):
        GroundingScorer(tiny_model).reading([Tap(layer)])
