"""The seven sources of a token's probability: they sum to it, and are those of a slow and plain account."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gasp_core.errors import ModelOutOfMemory, ModelUnsupported
from gasp_core.features import assign_tokens
from gasp_core.grounding import Exchange, Passage, SentenceSkip
from gasp_core.model import LanguageModel, attending_by, load_model
from gasp_core.plan import Limits, plan_exchange
from gasp_core.template import PLAIN
from gasp_core.text.chunks import context_chunks
from gasp_core.tpa.architecture import DecoderLayer, decoder_layers
from gasp_core.tpa.attribution import attribute_answer
from gasp_core.tpa.reading import token_sources
from gasp_core.tpa.shares import PromptLayout, group_masses, head_weights, split_share
from gasp_core.tpa.sources import Source
from tests.models import save_model

FAMILIES = ("llama", "qwen2", "gpt2")

MUSEUM = Exchange(
    "When does it open?",
    (
        Passage("hours", "The museum opens at nine and closes at six."),
        Passage("prices", "Tickets cost twelve euros; children pay nothing."),
    ),
    "The museum opens at nine. Tickets cost twelve euros. Yes.",
)
REFUSAL = "I could not find any information about that in the documents. "
PROMPT = list(range(10, 40))
ANSWER_TOKENS = 7
LAYOUT = PromptLayout(context_start=5, context_end=20, prompt_end=len(PROMPT))


@pytest.mark.parametrize("family", [*FAMILIES, "mistral-sliding", "phi3", "qwen3"])
def test_the_seven_sources_sum_to_the_probability_of_the_token(
    tiny_model_of: Callable[[str], LanguageModel], family: str
) -> None:
    model = tiny_model_of(family)
    sources = token_sources(model, PROMPT, _answer(model), LAYOUT)
    assert (sources.sum(dim=-1) - _probabilities(model)).abs().max() < 1e-4
    # Numbers next to nothing would sum to within this, too.
    assert sources.abs().amax() > 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_the_sources_are_those_of_a_plain_account_over_all_layers_at_once(
    tiny_model_of: Callable[[str], LanguageModel], family: str
) -> None:
    model = tiny_model_of(family)
    torch.testing.assert_close(
        token_sources(model, PROMPT, _answer(model), LAYOUT), _plain_account(model), atol=1e-5, rtol=0.0
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_size_of_the_blocks_changes_no_number(tiny_model_of: Callable[[str], LanguageModel], family: str) -> None:
    model = tiny_model_of(family)
    whole = token_sources(model, PROMPT, _answer(model), LAYOUT)
    for block_tokens in (1, 3):
        pieces = token_sources(model, PROMPT, _answer(model), LAYOUT, block_tokens=block_tokens)
        torch.testing.assert_close(pieces, whole, atol=1e-5, rtol=0.0)


def test_the_attention_of_one_block_of_one_layer_is_alive_at_a_time(tiny_model: LanguageModel) -> None:
    with _counted_attention(tiny_model) as seen:
        token_sources(tiny_model, PROMPT, _answer(tiny_model), LAYOUT, block_tokens=3)
    heads, keys = 4, len(PROMPT) + ANSWER_TOKENS - 1
    # Two layers times three blocks, and the prompt's own rows never.
    assert [alive for alive, _ in seen] == [1] * 6
    assert [shape for _, shape in seen] == [(1, heads, 3, keys - 4)] * 2 + [(1, heads, 3, keys - 1)] * 2 + [
        (1, heads, 1, keys)
    ] * 2


def test_a_model_is_left_as_it_was(tiny_model: LanguageModel) -> None:
    ids = torch.tensor([PROMPT])
    before = _state(tiny_model)
    with torch.inference_mode():
        expected = tiny_model.hidden(ids)
        token_sources(tiny_model, PROMPT, _answer(tiny_model), LAYOUT)
        torch.testing.assert_close(tiny_model.hidden(ids), expected)
    assert _state(tiny_model) == before


@pytest.mark.parametrize("family", ["bloom", "gemma2", "mamba"])
def test_a_model_whose_layers_are_of_another_kind_is_refused(
    tiny_model_of: Callable[[str], LanguageModel], family: str
) -> None:
    with pytest.raises(ModelUnsupported):
        token_sources(tiny_model_of(family), PROMPT, PROMPT, LAYOUT)


def test_sixteen_bits_still_sum(tmp_path: Path) -> None:
    model = load_model(str(save_model(tmp_path)), device="cpu", dtype="bfloat16")
    sources = token_sources(model, PROMPT, _answer(model), LAYOUT, block_tokens=ANSWER_TOKENS)
    assert (sources.sum(dim=-1) - _probabilities(model)).abs().max() < 0.01


def test_the_position_groups_partition_the_attention() -> None:
    attention = torch.rand(2, 3, 9).tril(9 - 3)
    attention /= attention.sum(dim=-1, keepdim=True)
    masses = group_masses(attention, last_position=8, layout=PromptLayout(1, 4, 6))
    assert masses.shape == (3, 2, 4)
    torch.testing.assert_close(masses.sum(dim=-1), torch.ones(3, 2))


def test_a_row_of_attention_is_split_by_hand() -> None:
    # Positions: query, context, context, query (the last of the prompt), answer, answer.
    attention = torch.tensor([[[0.1, 0.2, 0.3, 0.05, 0.35, 0.0], [0.1, 0.1, 0.1, 0.2, 0.1, 0.4]]])
    masses = group_masses(attention, last_position=5, layout=PromptLayout(1, 3, 4))
    expected = torch.tensor([[[0.15, 0.5, 0.0, 0.35]], [[0.3, 0.2, 0.1, 0.4]]])
    torch.testing.assert_close(masses, expected)


def test_keys_that_a_sliding_window_has_dropped_are_not_counted_for_the_query() -> None:
    # Only the last two of six positions are left: the answer's.
    masses = group_masses(torch.tensor([[[0.25, 0.75]]]), last_position=5, layout=PromptLayout(1, 3, 4))
    torch.testing.assert_close(masses, torch.tensor([[[0.0, 0.0, 0.25, 0.75]]]))


def test_the_head_that_raises_the_logit_of_the_token_weighs_most() -> None:
    mixed = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])  # one position, two heads of two numbers
    projection = torch.tensor([[2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    unembedding = torch.tensor([[1.0, -1.0]])
    # The first head adds (2, 0) to the residual and 2 to the logit; the second adds (0, 1) and -1.
    expected = torch.softmax(torch.tensor([[2.0, -1.0]]), dim=-1)
    torch.testing.assert_close(head_weights(mixed, projection, unembedding), expected)


def test_a_share_is_split_whole_whatever_the_attention_sums_to() -> None:
    weights = torch.tensor([[0.25, 0.75]])
    masses = torch.tensor([[[0.5, 0.0, 0.0, 0.0], [0.2, 0.0, 0.0, 0.2]]])
    split = split_share(torch.tensor([-0.8], dtype=torch.float64), weights, masses)
    expected = torch.tensor([[-0.8 * (0.25 + 0.375), 0.0, 0.0, -0.8 * 0.375]], dtype=torch.float64)
    torch.testing.assert_close(split, expected)


def test_sentences_have_the_means_of_their_tokens(tiny_model: LanguageModel) -> None:
    answer = attribute_answer(tiny_model, MUSEUM)
    (plan,) = plan_exchange(
        MUSEUM, context_chunks(MUSEUM.passages, 5), model=tiny_model, template=PLAIN, limits=Limits()
    )
    members = assign_tokens(MUSEUM.answer, answer.sentences, plan.answer_spans)
    assert [list(tokens) for tokens in answer.members] == members
    with torch.inference_mode():
        ids = torch.tensor([plan.prompts[0] + plan.answer_ids])
        logits = tiny_model.network(ids).logits[0, len(plan.prompts[0]) - 1 : -1]
    probabilities = logits.softmax(dim=-1).gather(-1, torch.tensor(plan.answer_ids)[:, None])[:, 0]
    first, second, third = answer.of_sentences()
    assert first is not None
    assert second is not None
    assert first.probability == pytest.approx(float(probabilities[members[0]].mean()), abs=1e-4)
    assert second.probability == pytest.approx(float(probabilities[members[1]].mean()), abs=1e-4)
    assert third is None
    assert answer.skips[2] is SentenceSkip.TOO_SHORT


def test_the_context_is_where_the_passages_are(tiny_model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts: list[tuple[list[int], PromptLayout]] = []

    def remember(
        model: LanguageModel, prompt: list[int], answer_ids: list[int], layout: PromptLayout, **options: int
    ) -> Tensor:
        layouts.append((prompt, layout))
        return token_sources(model, prompt, answer_ids, layout, **options)

    monkeypatch.setattr("gasp_core.tpa.attribution.token_sources", remember)
    attribute_answer(tiny_model, MUSEUM)
    ((prompt, layout),) = layouts
    context = tiny_model.tokenizer.decode(prompt[layout.context_start : layout.context_end])
    assert context == "".join(passage.text + PLAIN.separator for passage in MUSEUM.passages)
    assert tiny_model.tokenizer.decode(prompt[layout.context_end : layout.prompt_end]) == PLAIN.question_segment(
        MUSEUM.question
    )


def test_a_sentence_is_read_by_the_window_that_makes_it_likeliest(tiny_model: LanguageModel) -> None:
    passages = tuple(Passage(str(at), f"Refunds are possible within {at} days. " * 4) for at in range(9))
    exchange = Exchange("A refund?", passages, MUSEUM.answer)
    plans = plan_exchange(exchange, context_chunks(passages, 5), model=tiny_model, template=PLAIN, limits=Limits())
    assert len(plans) > 1
    answer = attribute_answer(tiny_model, exchange)
    start = len(tiny_model.encode(PLAIN.head).ids)
    windows = [
        token_sources(
            tiny_model,
            plan.prompts[0],
            plan.answer_ids,
            PromptLayout(start, plan.context_end, len(plan.prompts[0])),
        )
        for plan in plans
    ]
    for tokens in answer.members[:2]:
        best = max(windows, key=lambda sources: float(sources[list(tokens)].sum(dim=-1).log().sum()))
        torch.testing.assert_close(torch.tensor(answer.values[list(tokens)]), best[list(tokens)])


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        (Exchange("When?", (), MUSEUM.answer), SentenceSkip.NO_PASSAGES),
        (Exchange("When?", MUSEUM.passages, REFUSAL * 3), SentenceSkip.REFUSAL),
        (Exchange("When? " * 200, MUSEUM.passages, MUSEUM.answer), SentenceSkip.QUESTION_TOO_LONG),
    ],
)
def test_an_answer_that_cannot_be_read_says_why_for_every_sentence(
    tiny_model: LanguageModel, exchange: Exchange, reason: SentenceSkip
) -> None:
    answer = attribute_answer(tiny_model, exchange)
    assert answer.skips == (reason,) * 3
    assert answer.of_sentences() == (None, None, None)


def test_numbers_that_are_not_finite_give_no_score(tmp_path: Path) -> None:
    model = load_model(str(save_model(tmp_path)), device="cpu")
    with torch.no_grad():
        decoder_layers(model)[1].projection_weight.fill_(torch.nan)
    answer = attribute_answer(model, MUSEUM)
    assert answer.skips == (SentenceSkip.NOT_FINITE, SentenceSkip.NOT_FINITE, SentenceSkip.TOO_SHORT)


@torch.inference_mode()
def _answer(model: LanguageModel) -> list[int]:
    """What the model itself says after the prompt: tokens with some probability to be split."""
    ids = list(PROMPT)
    for _ in range(ANSWER_TOKENS):
        ids.append(int(model.network(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(PROMPT) :]


def _state(model: LanguageModel) -> tuple[str, int]:
    """How a model attends, and how many hooks it has."""
    modules = list(model.network.modules())
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in modules)
    return str(model.network.config._attn_implementation), hooks


@torch.inference_mode()
def _probabilities(model: LanguageModel) -> Tensor:
    """The answer's probabilities (A,) by the model's own logits."""
    answer_ids = _answer(model)
    logits = model.network(input_ids=torch.tensor([PROMPT + answer_ids[:-1]])).logits[0, len(PROMPT) - 1 :].float()
    chosen: Tensor = logits.softmax(dim=-1).gather(-1, torch.tensor(answer_ids)[:, None])[:, 0]
    return chosen


@torch.inference_mode()
def _plain_account(model: LanguageModel) -> Tensor:
    """The sources (A, 7) with everything of every layer at hand, a token and a head at a time."""
    layers, answer_ids = decoder_layers(model), _answer(model)
    points: list[Tensor] = []  # the residual stream before each norm: the input of every layer, its middle, …
    mixed: list[Tensor] = []
    norms = [norm for layer in layers for norm in _norms(layer)]
    hooks = [
        *(norm.register_forward_pre_hook(lambda _module, inputs: points.append(inputs[0][0])) for norm in norms),
        *(
            one.projection.register_forward_pre_hook(lambda _module, inputs: mixed.append(inputs[0][0]))
            for one in layers
        ),
        layers[-1].whole.register_forward_hook(lambda _module, _inputs, output: points.append(output[0])),
    ]
    with attending_by(model.network, "eager"):
        output = model.network(input_ids=torch.tensor([PROMPT + answer_ids[:-1]]), output_attentions=True)
    for hook in hooks:
        hook.remove()
    sources = torch.zeros(ANSWER_TOKENS, len(Source), dtype=torch.float64)
    for token, target in enumerate(answer_ids):
        at = len(PROMPT) - 1 + token
        unembedding = model.network.get_output_embeddings().weight
        probe = [float((unembedding @ point[at]).softmax(dim=-1)[target]) for point in points]
        sources[token, Source.EMBEDDING] = probe[0]
        for number, layer in enumerate(layers):
            attention = output.attentions[number][0]
            weights = _weights(layer, mixed[number][at], unembedding[target], len(attention))
            share = probe[2 * number + 1] - probe[2 * number]
            for head, weight in enumerate(weights):
                for position in range(at + 1):
                    mass = float(attention[head, at, position])
                    sources[token, _source(position, at)] += share * float(weight) * mass
            sources[token, Source.FEED_FORWARD] += probe[2 * number + 2] - probe[2 * number + 1]
        final = float(output.logits[0, at].softmax(dim=-1)[target])
        sources[token, Source.FINAL_NORM] = final - probe[-1]
    return sources


def _norms(layer: DecoderLayer) -> list[Any]:
    """The two norms of a layer: that before attention and that before feed-forward."""
    return [module for name, module in layer.whole.named_children() if "norm" in name or name.startswith("ln_")]


def _weights(layer: DecoderLayer, mixed: Tensor, unembedding: Tensor, heads: int) -> Tensor:
    """Each head alone through the projection, the others at nothing."""
    size = len(mixed) // heads
    nothing = layer.projection(torch.zeros_like(mixed))  # its bias, if it has one
    logits = []
    for head in range(heads):
        alone = torch.zeros_like(mixed)
        alone[head * size : (head + 1) * size] = mixed[head * size : (head + 1) * size]
        logits.append((layer.projection(alone) - nothing) @ unembedding)
    return torch.stack(logits).softmax(dim=-1)


def _source(position: int, at: int) -> Source:
    if position == at:
        return Source.SELF
    if position >= LAYOUT.prompt_end:
        return Source.PAST
    return Source.CONTEXT if LAYOUT.context_start <= position < LAYOUT.context_end else Source.QUERY


@contextmanager
def _counted_attention(model: LanguageModel) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
    """How many attention tensors are alive whenever a layer has made one, itself included, and its shape."""
    alive: list[weakref.ref[Tensor]] = []
    seen: list[tuple[int, tuple[int, ...]]] = []

    def count(_module: object, _inputs: object, output: tuple[Tensor, Tensor | None]) -> None:
        if output[1] is not None:
            alive.append(weakref.ref(output[1]))
            seen.append((sum(one() is not None for one in alive), tuple(output[1].shape)))

    hooks = [layer.attention.register_forward_hook(count) for layer in decoder_layers(model)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def test_an_answer_that_is_too_much_for_the_device_is_an_error_of_ours(
    tiny_model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object, **__: object) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("gasp_core.tpa.attribution.token_sources", exhausted)
    with pytest.raises(ModelOutOfMemory, match="do not fit cpu"):
        attribute_answer(tiny_model, MUSEUM)
