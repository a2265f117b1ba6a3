"""Shared-prefix passes: the numbers of plainly re-scored prompts, at a part of their tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gasp_core.grounding import Exchange, Passage
from gasp_core.model import LanguageModel, load_model
from gasp_core.passes import attention, choice, trunks
from gasp_core.passes.attention import blocked_attention, segment_attention
from gasp_core.passes.choice import choose_passes
from gasp_core.passes.pack import KeyValues, Pack, Segment
from gasp_core.passes.packed import PackedNetwork
from gasp_core.passes.plain import PlainPasses
from gasp_core.passes.shared import Network, SharedPrefixPasses
from gasp_core.passes.taps import Tap
from gasp_core.passes.trunks import TrunkCache
from gasp_core.plan import Limits, Plan, each_group, plan_exchange
from gasp_core.template import GASP_RAG, PLAIN, PromptTemplate
from gasp_core.text.chunks import context_chunks
from tests.models import save_model

CPU = torch.device("cpu")
ENOUGH = 1_000_000

HOURS = (
    Passage("hours", "The museum opens at nine and closes at six."),
    Passage("prices", "Tickets cost twelve euros; children pay nothing."),
    Passage("dogs", "Dogs must stay outside."),
)
MUSEUM = Exchange("When does it open?", HOURS, "The museum opens at nine. Tickets cost twelve euros.")
DOGS = Exchange("Are dogs welcome?", HOURS, "No, dogs must stay outside. Cats too.")
REFUND = Exchange(
    "A refund?", (Passage("one", "Refunds are possible within 30 days. Bring the receipt."),), "Yes. Bring it."
)


class Counter:
    """Counts what goes through a network."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.packs: list[int] = []

    def __call__(self, pack: Pack) -> torch.Tensor:
        self.packs.append(len(pack.ids))
        return self.network(pack)

    def reading(self, taps: Sequence[Tap]) -> Network:
        return Counter(self.network.reading(taps))

    def take(self) -> int:
        tokens, self.packs = sum(self.packs), []
        return tokens


def plans_of(
    model: LanguageModel, *exchanges: Exchange, template: PromptTemplate = PLAIN, masked: bool = False
) -> list[Plan]:
    plans = [
        plan_exchange(
            one,
            context_chunks(one.passages, 5),
            model=model,
            template=template,
            limits=Limits(),
            removals=each_group,
            masked=masked,
        )
        for one in exchanges
    ]
    assert all(len(windows) == 1 for windows in plans)
    return [windows[0] for windows in plans]


def counted(model: LanguageModel, *, max_tokens: int = ENOUGH, cache_bytes: int = 0) -> tuple[Counter, Any]:
    counter = Counter(PackedNetwork(model.network, blocked_attention, wide=False))
    return counter, SharedPrefixPasses(counter, CPU, max_tokens=max_tokens, cache=TrunkCache(cache_bytes))


@torch.inference_mode()
def states_of(passes: Any, plans: list[Plan]) -> list[torch.Tensor]:
    states: list[torch.Tensor] = passes.answer_states(plans)
    return states


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral", "phi3", "gemma", "gpt2"])
@pytest.mark.parametrize("template", [PLAIN, GASP_RAG], ids=lambda template: template.name)
def test_shared_prefixes_give_the_states_of_whole_prompts(
    family: str, template: PromptTemplate, tiny_model_of: Callable[[str], LanguageModel]
) -> None:
    model = tiny_model_of(family)
    choice = choose_passes(model)
    assert choice.reason == "shared prefixes by blocked attention"
    plans = plans_of(model, MUSEUM, REFUND, DOGS, template=template)
    for ours, plain in zip(states_of(choice.passes, plans), states_of(PlainPasses(model, 1), plans), strict=True):
        torch.testing.assert_close(ours, plain, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("max_tokens", [1, 7, 64, ENOUGH])
@pytest.mark.parametrize("cache_bytes", [0, ENOUGH])
def test_no_bound_changes_the_numbers(tiny_model: LanguageModel, max_tokens: int, cache_bytes: int) -> None:
    plans = plans_of(tiny_model, MUSEUM, DOGS, REFUND, MUSEUM)
    passes = choose_passes(tiny_model, max_tokens=max_tokens, cache_bytes=cache_bytes).passes
    for _ in range(2):
        for ours, plain in zip(states_of(passes, plans), states_of(PlainPasses(tiny_model, 1), plans), strict=True):
            torch.testing.assert_close(ours, plain, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        ("gemma2", "plain passes: it has layers of sliding_attention"),
        ("mistral-sliding", "plain passes: it has a sliding window"),
        ("llama-dynamic", "plain passes: its positions depend on the length of the text"),
        ("doge", "plain passes: it chooses what it attends to in a long text; one prompt at a time"),
        ("bloom", "plain passes: no way to share prefixes (blocked attention: "),
        ("mamba", "plain passes: it has layers of linear_attention"),
    ],
)
def test_a_model_that_cannot_share_is_run_the_plain_way_and_says_so(
    family: str, reason: str, tiny_model_of: Callable[[str], LanguageModel]
) -> None:
    model = tiny_model_of(family)
    choice = choose_passes(model)
    assert choice.reason.startswith(reason)
    (states,) = states_of(choice.passes, plans_of(model, MUSEUM))
    assert states.isfinite().all()


@pytest.mark.parametrize("family", ["phi3-longrope", "doge", "deepseek-v32", "glm-dsa", "llama-dynamic"])
def test_a_model_that_minds_padding_reads_each_prompt_as_if_it_were_alone(
    family: str, tiny_model_of: Callable[[str], LanguageModel]
) -> None:
    model = tiny_model_of(family)
    choice = choose_passes(model)
    assert choice.reason.endswith("; one prompt at a time, as padding moves its states")
    longer = Exchange("And?", (*HOURS, Passage("late", "On Friday it closes at nine. " * 5)), "It closes at nine.")
    plans = plans_of(model, MUSEUM, longer, REFUND)
    together = states_of(choice.passes, plans)
    for states, plan in zip(together, plans, strict=True):
        prompts = [torch.tensor([[*prompt, *plan.answer_ids[:-1]]]) for prompt in plan.prompts]
        with torch.inference_mode():
            alone = torch.stack([model.hidden(ids)[0, -len(plan.answer_ids) :] for ids in prompts])
        torch.testing.assert_close(states, alone, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["gemma2", "mistral-sliding", "bloom", "mamba"])
def test_a_model_that_does_not_mind_padding_reads_many_prompts_at_once(
    family: str, tiny_model_of: Callable[[str], LanguageModel]
) -> None:
    assert "one prompt at a time" not in choose_passes(tiny_model_of(family)).reason


def test_an_attention_whose_numbers_differ_is_not_used(
    tiny_model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong_attention(*arguments: Any, **options: Any) -> torch.Tensor:
        return blocked_attention(*arguments, **options) * 1.01

    monkeypatch.setattr(choice, "blocked_attention", wrong_attention)
    reason = choose_passes(tiny_model).reason
    assert reason == "plain passes: no way to share prefixes (wrong attention: its states differ from its own)"


def test_each_token_of_a_context_is_read_once_for_what_follows_it(tiny_model: LanguageModel) -> None:
    counter, passes = counted(tiny_model)
    (plan,) = plans_of(tiny_model, MUSEUM)
    states_of(passes, [plan])
    branches = [len(prompt) + len(plan.answer_ids) - 1 for prompt in plan.prompts]
    trunk = plan.prompts[0][:-1]
    shared = [
        next((at for at, (a, b) in enumerate(zip(prompt, trunk, strict=False)) if a != b), len(trunk))
        for prompt in plan.prompts
    ]
    assert counter.take() == len(trunk) + sum(branches) - sum(shared)


def test_answers_that_share_their_context_share_its_trunk(
    tiny_model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trunks, "MIN_SHARED_TOKENS", 8)
    counter, passes = counted(tiny_model, cache_bytes=ENOUGH)
    museum, dogs = plans_of(tiny_model, MUSEUM, DOGS)
    states_of(passes, [museum])
    first = counter.take()
    states_of(passes, [museum])
    assert first - counter.take() == len(museum.prompts[0]) - 1 + len(museum.prompts[1]) - 1
    states_of(passes, [dogs])
    alone = counter.take()
    fresh, uncached = counted(tiny_model)
    states_of(uncached, [dogs])
    # The questions begin alike, too.
    assert fresh.take() - alone >= dogs.context_end


def test_a_context_that_begins_like_a_known_one_is_read_from_there(
    tiny_model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trunks, "MIN_SHARED_TOKENS", 8)
    counter, passes = counted(tiny_model, cache_bytes=ENOUGH)
    longer = Exchange("And?", (*HOURS, Passage("late", "On Friday it closes at nine.")), "It closes at nine on Friday.")
    known, new = plans_of(tiny_model, MUSEUM, longer)
    states_of(passes, [known])
    counter.take()
    expected = states_of(PlainPasses(tiny_model, 1), [new])[0]
    torch.testing.assert_close(states_of(passes, [new])[0], expected, atol=2e-5, rtol=1e-4)
    assert counter.packs[0] == len(new.prompts[0]) - 1 - known.context_end + len(new.prompts[1]) - 1


def test_the_same_context_twice_in_a_batch_is_read_once(tiny_model: LanguageModel) -> None:
    counter, passes = counted(tiny_model)
    plans = plans_of(tiny_model, MUSEUM, replace(MUSEUM, answer=DOGS.answer))
    states_of(passes, plans)
    both = counter.take()
    apart = 0
    for plan in plans:
        states_of(passes, [plan])
        apart += counter.take()
    assert apart - both == len(plans[0].prompts[0]) - 1 + len(plans[0].prompts[1]) - 1


def test_a_forward_holds_no_more_tokens_than_asked_unless_a_branch_is_longer(tiny_model: LanguageModel) -> None:
    counter, passes = counted(tiny_model, max_tokens=40)
    plans = plans_of(tiny_model, MUSEUM, DOGS, REFUND)
    states_of(passes, plans)
    longest = max(len(prompt) + len(plan.answer_ids) for plan in plans for prompt in plan.prompts)
    assert max(counter.packs) <= max(40, longest)
    assert sum(tokens > 40 for tokens in counter.packs) < len(counter.packs)


def trunk_of(size_bytes: int) -> KeyValues:
    trunk = KeyValues(1)
    half = torch.zeros(1, size_bytes // 2, dtype=torch.uint8)
    trunk.write(0, 0, half, half)
    return trunk


def test_the_cache_forgets_what_was_not_used_for_longest() -> None:
    cache = TrunkCache(300)
    one, two, three = ([number] * 100 for number in (1, 2, 3))
    for ids in (one, two, three):
        cache.keep(ids, trunk_of(100))
    assert cache.find(one)[1] == 100
    cache.keep([4] * 100, trunk_of(100))
    assert cache.find(two) == (None, 0)
    assert cache.size_bytes == 300
    cache.keep([5] * 100, trunk_of(400))
    assert cache.size_bytes <= 300


def test_a_short_common_beginning_is_not_worth_a_copy() -> None:
    cache = TrunkCache(ENOUGH)
    cache.keep([1] * 100, trunk_of(100))
    assert cache.find([1] * 50 + [2] * 100) == (None, 0)
    assert cache.find([1] * 90 + [2] * 100)[1] == 90
    cache.keep([3] * 20, trunk_of(100))
    assert cache.find([3] * 20)[1] == 20
    assert cache.find([3] * 30) == (None, 0)


@pytest.mark.parametrize("kind", [blocked_attention, segment_attention])
def test_attention_is_that_of_the_plain_formula(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "BLOCK_ROWS", 4)
    generator = torch.Generator().manual_seed(5)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator)

    trunk = KeyValues(9)
    trunk.write(0, 0, random(9, 2, 8), random(9, 2, 8))
    # The whole trunk, a part, two parts with a hole between, nothing.
    seen = [((0, 9),), ((0, 4),), ((0, 2), (5, 8)), ()]
    segments = [Segment([1] * length, 0, trunk, sees) for length, sees in zip((6, 1, 11, 3), seen, strict=True)]
    pack = Pack(segments, CPU)
    query, key, value = random(21, 6, 8), random(21, 2, 8), random(21, 2, 8)
    mixed = kind(query, key, value, pack=pack, layer=0, scale=0.3)
    for number, (start, end) in enumerate(pack.spans):
        keys, values = (torch.cat(pieces) for pieces in pack.seen_by(number, 0, key, value))
        for row in range(start, end):
            visible = len(keys) - (end - start) + (row - start) + 1
            for head in range(6):
                scores = keys[:visible, head // 3] @ query[row, head] * 0.3
                expected = torch.softmax(scores, 0) @ values[:visible, head // 3]
                torch.testing.assert_close(mixed[row, head], expected, atol=1e-5, rtol=1e-5)


def test_in_16_bits_the_residual_is_kept_in_float32(tmp_path: Path) -> None:
    folder = str(save_model(tmp_path / "tiny"))
    exact, narrow = (load_model(folder, device="cpu", dtype=dtype) for dtype in ("float32", "bfloat16"))
    choice = choose_passes(narrow)
    assert choice.reason == "shared prefixes by blocked attention, residual in float32"
    dtypes = []
    narrow.network.base_model.norm.register_forward_pre_hook(lambda _, inputs: dtypes.append(inputs[0].dtype))
    plans = plans_of(exact, MUSEUM, REFUND)
    ours, reference = (
        torch.cat([states.flatten() for states in states_of(passes, plans)])
        for passes in (choice.passes, PlainPasses(exact, 1))
    )
    assert set(dtypes) == {torch.float32}
    assert (ours - reference).norm() < 0.05 * reference.norm()
    # Outside the passes the network is what it was.
    with torch.inference_mode():
        assert narrow.hidden(torch.tensor([[5, 6, 7]])).dtype == torch.bfloat16
