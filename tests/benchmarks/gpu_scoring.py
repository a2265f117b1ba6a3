"""Answers a second on a GPU, and whether the numbers are right there.

    python -m tests.benchmarks.gpu_scoring [--cpu-check] [--output PATH] [--limit-s SECONDS]

A model of the shape of Qwen2.5-1.5B is made up at random on the device and its prompts are random tokens, so nothing is
fetched, and nothing but torch and transformers need be there. Measured are the exactness of shared prefixes, answers a
second beside plain passes, the share of the card's own matrix rate that this is, and memory.
Writes build/bench/gpu_scoring.json, section by section; the exit status says whether float32 is exact.

Without CUDA, or with --cpu-check, all of it runs in seconds on a tiny shape: that proves the script, not the speed.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import Qwen2Config, Qwen2ForCausalLM

from gasp_core.divergence import token_scores
from gasp_core.grounding import Truncation
from gasp_core.model import LanguageModel
from gasp_core.passes.attention import Attention, blocked_attention, segment_attention, varlen_attention
from gasp_core.passes.choice import Choice, Passes, choose_passes
from gasp_core.passes.packed import PackedNetwork
from gasp_core.passes.plain import PlainPasses
from gasp_core.passes.shared import SharedPrefixPasses
from gasp_core.passes.trunks import TrunkCache
from gasp_core.plan import Plan

OUTPUT = Path("build/bench/gpu_scoring.json")

# What float32 may differ by: log-probabilities in nats, states relative to their size.
TOLERANCE = 1e-4

PASSAGES = 5
HEAD_TOKENS = 3
METHODS = ("two-pass", "leave-one-out", "masked")
ATTENTIONS: tuple[Attention, ...] = (varlen_attention, segment_attention, blocked_attention)

# What a way of running may raise where a device, a dtype or a torch version does not have it.
UNSUPPORTED = (AttributeError, ImportError, RuntimeError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Size:
    """A model's shape, the prompts that it reads and how much is measured."""

    name: str
    layers: int
    hidden: int
    heads: int
    key_heads: int
    intermediate: int
    vocabulary: int
    window: int
    initial: float
    passage_tokens: int
    question_tokens: int
    answer_tokens: int
    checked: int  # answers whose numbers are compared
    answers: int  # answers in a timed round
    answers_one_by_one: int  # the same, where every prompt is a forward of its own
    budgets: tuple[int, ...]  # tokens a forward
    matrix: int  # rows of the square matrices that the card's rate is measured with
    repetitions: int


FULL = Size(
    name="qwen2.5-1.5b",
    layers=28,
    hidden=1536,
    heads=12,
    key_heads=2,
    intermediate=8960,
    vocabulary=151_936,
    window=32_768,
    initial=0.02,
    passage_tokens=200,
    question_tokens=20,
    answer_tokens=120,
    checked=8,
    answers=32,
    answers_one_by_one=8,
    budgets=(16_384, 4_096, 32_768),
    matrix=8_192,
    repetitions=5,
)

TINY = Size(
    name="tiny",
    layers=2,
    hidden=64,
    heads=4,
    key_heads=2,
    intermediate=128,
    vocabulary=512,
    window=512,
    initial=0.1,
    passage_tokens=16,
    question_tokens=5,
    answer_tokens=12,
    checked=2,
    answers=2,
    answers_one_by_one=2,
    budgets=(256, 64),
    matrix=64,
    repetitions=2,
)


class Journal:
    """What was found so far: printed as it comes, and kept in a file that is whole at every moment."""

    def __init__(self, output: Path, limit_s: float) -> None:
        self.report: dict[str, Any] = {}
        self._output = output
        self._started_s = time.monotonic()
        self._limit_s = limit_s

    @property
    def is_late(self) -> bool:
        """Whether nothing new should be begun."""
        return time.monotonic() - self._started_s > self._limit_s

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._started_s:6.1f} s] {text}", flush=True)

    def keep(self, section: str, found: Any) -> None:
        """Add a section, or put its newer state in its place."""
        self.report[section] = found
        self._output.parent.mkdir(parents=True, exist_ok=True)
        self._output.write_text(json.dumps(self.report, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Numbers:
    """Everything that some plans came to, one after the other."""

    states: Tensor
    log_probabilities: Tensor
    divergences: Tensor


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of one timed round: the passes, then head and divergences."""

    passes_s: float
    scores_s: float

    @property
    def total_s(self) -> float:
        return self.passes_s + self.scores_s


@dataclass(frozen=True, slots=True)
class Forward:
    """Tokens of one forward, and the pairs of tokens of which one sees the other."""

    tokens: int
    pairs: int


@dataclass(frozen=True, slots=True)
class Way:
    """One way of scoring, to be measured; ``plans`` are those of ``method``."""

    name: str
    method: str
    tokens_a_forward: int
    passes: Passes
    model: LanguageModel
    plans: Sequence[Plan]


@dataclass(frozen=True, slots=True)
class Row:
    """One way of scoring, measured."""

    way: str
    method: str
    tokens_a_forward: int
    answers_per_s: float
    ms_per_answer: float
    slowest_ms_per_answer: float
    share_of_head_and_divergences: float
    forwards: int
    tokens_run_per_answer: float
    tflop_per_answer: float
    tflop_per_s: float
    share_of_matrix_rate: float
    peak_gib_over_model: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Check and measure; 0 if float32 is exact."""
    options = parse(arguments)
    on_cuda = torch.cuda.is_available() and not options.cpu_check
    device, size = (torch.device("cuda", 0), FULL) if on_cuda else (torch.device("cpu"), TINY)
    if on_cuda:
        torch.set_float32_matmul_precision("highest")  # no TF32
    journal = Journal(options.output, options.limit_s)
    journal.keep("machine", describe(device, size))
    journal.say(brief(journal.report["machine"]))
    with ExitStack() as stack:
        if not on_cuda:
            stack.enter_context(one_thread())
        exact = random_model(size, device)
        stack.enter_context(torch.inference_mode())
        agrees = check_numbers(exact, size, journal)
        narrow = in_bfloat16(exact)
        del exact
        measure_card(narrow, size, journal)
        measure_ways(narrow, size, journal)
    print(table(journal.report["ways"]))
    journal.say("done" if on_cuda else "done; on a CPU these figures prove the script and nothing else")
    journal.say("float32 is exact" if agrees else "FLOAT32 IS NOT EXACT")
    return 0 if agrees else 1


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Answers a second on a GPU, and whether the numbers are right there.")
    parser.add_argument("--cpu-check", action="store_true", help="prove the script on a tiny model")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--limit-s", type=float, default=400.0, help="begin nothing new after that many seconds")
    return parser.parse_args(arguments)


def describe(device: torch.device, size: Size) -> dict[str, str]:
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {"device": name, "torch": torch.__version__, "transformers": transformers.__version__, "model": size.name}


@contextmanager
def one_thread() -> Iterator[None]:
    """Several threads on tiny matrices wait for each other more than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# --- the model and what it reads


def random_model(size: Size, device: torch.device) -> LanguageModel:
    """A float32 model of random weights that bfloat16 holds as well, so that only the arithmetic differs."""
    config = Qwen2Config(
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.key_heads,
        intermediate_size=size.intermediate,
        vocab_size=size.vocabulary,
        max_position_embeddings=size.window,
        initializer_range=size.initial,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
    )
    torch.manual_seed(1)
    with device:
        network: Any = Qwen2ForCausalLM(config)
    network.eval().requires_grad_(requires_grad=False)
    # Surer predictions than a random model's, so that what it has read makes a difference.
    network.base_model.norm.weight.mul_(4.0)
    for weights in network.parameters():
        weights.data = weights.data.bfloat16().float()
    return LanguageModel(
        name=size.name,
        revision="random",
        dtype="float32",
        device=device,
        window=size.window,
        network=network,
        tokenizer=None,
    )


def in_bfloat16(model: LanguageModel) -> LanguageModel:
    """A copy with its weights, but not its rotary frequencies, in bfloat16."""
    network = copy.deepcopy(model.network)
    for weights in network.parameters():
        weights.data = weights.data.bfloat16()
    return replace(model, network=network, dtype="bfloat16")


def fresh(model: LanguageModel) -> LanguageModel:
    """A copy that no passes have put hooks into."""
    return replace(model, network=copy.deepcopy(model.network))


def random_plans(size: Size, count: int, method: str = "leave-one-out") -> list[Plan]:
    """Plans of one method, each with tokens of its own; the same tokens at every call."""
    generator = torch.Generator().manual_seed(7)

    def tokens(length: int) -> list[int]:
        return torch.randint(3, size.vocabulary, (length,), generator=generator).tolist()

    plans = []
    for _ in range(count):
        head, question, answer = tokens(HEAD_TOKENS), tokens(size.question_tokens), tokens(size.answer_tokens)
        passages = [tokens(size.passage_tokens) for _ in range(PASSAGES)]
        plans.append(plan_of(method, head, passages, question, answer))
    return plans


def plan_of(
    method: str, head: list[int], passages: Sequence[list[int]], question: list[int], answer: list[int]
) -> Plan:
    """What gasp_core.plan makes of an exchange with these tokens."""
    places = list(pairwise(accumulate(map(len, passages), initial=len(head))))
    full = head + [token for passage in passages for token in passage] + question
    without = [full[:start] + full[end:] for start, end in places]
    removed = range(0 if method == "two-pass" else len(passages))
    is_masked = method == "masked"
    return Plan(
        prompts=(full, head + question, *(full if is_masked else without[one] for one in removed)),
        hidden=((), (), *((places[one],) if is_masked else () for one in removed)),
        removals=tuple((one,) for one in removed),
        context_end=places[-1][1],
        answer_ids=answer,
        answer_spans=[(at, at + 1) for at in range(len(answer))],
        chunks=tuple(range(len(passages))),
        truncation=Truncation(
            context_tokens=places[-1][1] - len(head),
            context_tokens_cut=0,
            answer_tokens=len(answer),
            answer_tokens_cut=0,
        ),
    )


# --- whether the numbers are right


def check_numbers(exact: LanguageModel, size: Size, journal: Journal) -> bool:
    """Compare float32 with plain float32, then bfloat16 with float32. Gives whether float32 agrees."""
    plans = random_plans(size, size.checked)
    reference = numbers(PlainPasses(exact, 1), exact, plans)
    journal.keep("what_removal_does", effect(reference, plans))
    journal.say(f"removing passages moves log-probabilities by {brief(journal.report['what_removal_does'])}")
    found: dict[str, dict[str, Any]] = {}
    for attention in ATTENTIONS:
        found[name_of(attention)] = attempt(partial(by_attention, attention, exact, size, plans, reference))
        journal.keep("float32", found)
        journal.say(f"float32, {name_of(attention)}: {brief(found[name_of(attention)])}")
    check_bfloat16(exact, size, plans, reference, journal)
    ran = [one for one in found.values() if "cannot_run" not in one]
    return bool(ran) and all(max(one["log_probability_max"], one["state_relative"]) <= TOLERANCE for one in ran)


def check_bfloat16(
    exact: LanguageModel, size: Size, plans: Sequence[Plan], reference: Numbers, journal: Journal
) -> None:
    """How far bfloat16 is from float32: the plain way, each attention, the head, masked, and in other company."""
    plain = in_bfloat16(exact)
    found = {"plain passes": difference(numbers(PlainPasses(plain, 1), plain, plans), reference)}
    for attention in ATTENTIONS:
        found[name_of(attention)] = attempt(partial(by_attention, attention, fresh(plain), size, plans, reference))
    model = fresh(plain)
    passes = choose_passes(model, max_tokens=max(size.budgets), cache_bytes=0).passes
    together = numbers(passes, model, plans)
    apart = [numbers(passes, model, [plan]) for plan in plans]
    found["chosen"] = difference(together, reference)
    found["chosen, alone against in company"] = difference(joined(apart), together)
    hiding = random_plans(size, size.checked, "masked")
    found["masked, against masked float32"] = attempt(
        lambda: by_attention(segment_attention, exact, size, hiding, numbers(passes, model, hiding))
    )
    journal.keep("bfloat16", found)
    for name, one in found.items():
        journal.say(f"bfloat16, {name}: {brief(one)}")


def by_attention(
    attention: Attention, model: LanguageModel, size: Size, plans: Sequence[Plan], reference: Numbers
) -> dict[str, Any]:
    """How far shared prefixes with this attention are from the reference."""
    return difference(numbers(shared_by(attention, model, size), model, plans), reference)


def shared_by(attention: Attention, model: LanguageModel, size: Size) -> SharedPrefixPasses:
    network = PackedNetwork(model.network, attention, wide=model.dtype != "float32")
    return SharedPrefixPasses(network, model.device, max_tokens=max(size.budgets), cache=TrunkCache(0))


def numbers(passes: Passes, model: LanguageModel, plans: Sequence[Plan]) -> Numbers:
    states = passes.answer_states(plans)
    scores = [score(model, plan, one) for plan, one in zip(plans, states, strict=True)]
    return Numbers(
        torch.cat([one.flatten(0, 1).float() for one in states]),
        torch.cat([log_probabilities.flatten() for log_probabilities, _ in scores]),
        torch.cat([divergences.flatten() for _, divergences in scores]),
    )


def score(model: LanguageModel, plan: Plan, states: Tensor) -> tuple[Tensor, Tensor]:
    """As the scorer does it."""
    answer_ids = torch.tensor(plan.answer_ids, device=model.device)
    return token_scores(model.logits, model.vocabulary, states, answer_ids)


def joined(parts: Sequence[Numbers]) -> Numbers:
    return Numbers(
        torch.cat([part.states for part in parts]),
        torch.cat([part.log_probabilities for part in parts]),
        torch.cat([part.divergences for part in parts]),
    )


def difference(ours: Numbers, theirs: Numbers) -> dict[str, Any]:
    log_probabilities = (ours.log_probabilities - theirs.log_probabilities).abs()
    return {
        "log_probability_max": float(log_probabilities.max()),
        "log_probability_mean": float(log_probabilities.mean()),
        "divergence_max": float((ours.divergences - theirs.divergences).abs().max()),
        "state_max": float((ours.states - theirs.states).abs().max()),
        "state_relative": float((ours.states - theirs.states).norm() / theirs.states.norm()),
    }


def effect(reference: Numbers, plans: Sequence[Plan]) -> dict[str, float]:
    """What there is to measure: the largest change by taking all passages out, and by taking one."""
    by_prompt = reference.log_probabilities.view(len(plans), len(plans[0].prompts), -1)
    change = (by_prompt - by_prompt[:, :1]).abs()
    return {"none_max": float(change[:, 1].max()), "one_out_max": float(change[:, 2:].max())}


def attempt(function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The function's result, or why it cannot be had here."""
    try:
        return function()
    except UNSUPPORTED as error:
        return {"cannot_run": f"{type(error).__name__}: {str(error)[:160]}"}


def name_of(attention: object) -> str:
    return str(getattr(attention, "__name__", attention))


# --- what the card can do


def measure_card(model: LanguageModel, size: Size, journal: Journal) -> None:
    """The rate of a large matrix product, of the model's own at each budget, and of copying."""
    square = random_matrix(size.matrix, size.matrix, model.device)
    rate = 2 * size.matrix**3 / median_s(lambda: torch.matmul(square, square), model.device, size)
    copied = torch.empty_like(square)
    card: dict[str, Any] = {
        "matrix_flop_per_s": rate,
        "copy_bytes_per_s": 2 * square.nbytes / median_s(lambda: copied.copy_(square), model.device, size),
        "own_shapes_flop_per_s": {str(rows): own_rate(model, rows, size) for rows in sorted(size.budgets)},
    }
    journal.keep("card", card)
    own = ", ".join(f"{value / 1e12:.3g} at {rows} tokens" for rows, value in card["own_shapes_flop_per_s"].items())
    journal.say(f"the card multiplies at {rate / 1e12:.3g} TFLOP/s; the model's own shapes reach {own}")


def own_rate(model: LanguageModel, rows: int, size: Size) -> float:
    """Operations a second of one layer's projections alone."""
    linear = [one for one in model.network.base_model.layers[0].modules() if isinstance(one, nn.Linear)]
    inputs = [random_matrix(rows, one.in_features, model.device) for one in linear]

    def project() -> None:
        for one, given in zip(linear, inputs, strict=True):
            one(given)

    operations = sum(2 * rows * one.in_features * one.out_features for one in linear)
    return operations / median_s(project, model.device, size)


def random_matrix(rows: int, columns: int, device: torch.device) -> Tensor:
    return torch.randn(rows, columns, device=device, dtype=torch.bfloat16)


def median_s(function: Callable[[], object], device: torch.device, size: Size) -> float:
    """Seconds of one call: medians over a few, after a warm-up."""
    taken = []
    for _ in range(3 + 4 * size.repetitions):
        synchronize(device)
        started = time.perf_counter()
        function()
        synchronize(device)
        taken.append(time.perf_counter() - started)
    return median(taken[3:])


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# --- how fast


def measure_ways(model: LanguageModel, size: Size, journal: Journal) -> None:
    """Time ours at every budget, then the plain way at the same and with batches of one."""
    journal.keep("ways", [])
    plans = {method: random_plans(size, size.answers, method) for method in METHODS}
    for tokens in size.budgets:
        own = fresh(model)
        choice = choose_passes(own, max_tokens=tokens, cache_bytes=0)
        journal.keep("choice", {"reason": choice.reason, "attention": attention_of(choice)})
        journal.say(f"chosen at {tokens} tokens a forward: {choice.reason}, {attention_of(choice)}")
        for method in METHODS:
            keep_way(Way("ours", method, tokens, choice.passes, own, plans[method]), size, journal)
    for tokens in (*size.budgets, 1):
        name, count = ("plain", size.answers) if tokens > 1 else ("plain, one by one", size.answers_one_by_one)
        for method in METHODS[:2]:
            keep_way(Way(name, method, tokens, PlainPasses(model, tokens), model, plans[method][:count]), size, journal)


def attention_of(choice: Choice) -> str:
    """Which attention the passes were given; the choice's reason does not say."""
    network = getattr(choice.passes, "_network", None)
    return name_of(getattr(network, "_attention", "the model's own"))


def keep_way(way: Way, size: Size, journal: Journal) -> None:
    """Measure one way, or say why not."""
    title = f"{way.name}, {way.method}, {way.tokens_a_forward} tokens a forward"
    if journal.is_late:
        journal.say(f"{title}: no time left")
        return
    found = attempt(partial(measure_way, way, size, journal))
    if "cannot_run" in found:
        journal.say(f"{title}: {found['cannot_run']}")
        return
    journal.keep("ways", [*journal.report["ways"], found])
    journal.say(f"{title}: {found['answers_per_s']:.4g} answers/s, {found['tflop_per_s']:.3g} TFLOP/s")


def measure_way(way: Way, size: Size, journal: Journal) -> dict[str, Any]:
    """Time some rounds after one that warms up and is counted."""
    answers = len(way.plans)
    held = start_of_peak(way.model.device)
    with counting(way.model) as forwards:
        run_round(way)
    rounds = timed_rounds(way, size, journal)
    seconds = median(one.total_s for one in rounds)
    operations = model_operations(way, forwards, size)
    row = Row(
        way=way.name,
        method=way.method,
        tokens_a_forward=way.tokens_a_forward,
        answers_per_s=answers / seconds,
        ms_per_answer=seconds / answers * 1e3,
        slowest_ms_per_answer=max(one.total_s for one in rounds) / answers * 1e3,
        share_of_head_and_divergences=median(one.scores_s for one in rounds) / seconds,
        forwards=len(forwards),
        tokens_run_per_answer=sum(one.tokens for one in forwards) / answers,
        tflop_per_answer=operations / answers / 1e12,
        tflop_per_s=operations / seconds / 1e12,
        share_of_matrix_rate=operations / seconds / journal.report["card"]["matrix_flop_per_s"],
        peak_gib_over_model=peak_gib(way.model.device, held),
    )
    return asdict(row)


def run_round(way: Way) -> Round:
    """Score all answers as the scorer does: all passes, then answer by answer to numbers on the host."""
    synchronize(way.model.device)
    started = time.perf_counter()
    states = way.passes.answer_states(way.plans)
    synchronize(way.model.device)
    passed = time.perf_counter()
    for plan, one in zip(way.plans, states, strict=True):
        for scores in score(way.model, plan, one):
            scores.cpu()
    return Round(passed - started, time.perf_counter() - passed)


def timed_rounds(way: Way, size: Size, journal: Journal) -> list[Round]:
    """As many rounds as asked for; fewer, but one at least, when time runs out."""
    rounds = [run_round(way)]
    while len(rounds) < size.repetitions and not journal.is_late:
        rounds.append(run_round(way))
    return rounds


@contextmanager
def counting(model: LanguageModel) -> Iterator[list[Forward]]:
    """What goes through the network while this lasts, padding included."""
    forwards: list[Forward] = []

    def note(_module: nn.Module, _arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        ids, positions = named["input_ids"], named.get("position_ids")
        if positions is None:
            positions = torch.arange(ids.shape[1]).expand(ids.shape)
        forwards.append(Forward(tokens=ids.numel(), pairs=int((positions + 1).sum())))

    hook = model.network.base_model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        yield forwards
    finally:
        hook.remove()


def model_operations(way: Way, forwards: Sequence[Forward], size: Size) -> int:
    """Of projections, of attention and of the head at the answers' positions; a multiplication and an addition each."""
    weights = sum(int(one.numel()) for one in way.model.network.parameters()) - size.hidden * size.vocabulary
    pairs = sum(one.pairs for one in forwards)
    rows = 0
    for plan in way.plans:
        rows += len(plan.prompts) * len(plan.answer_ids)
        unseen = sum(end - start for spans in plan.hidden for start, end in spans)
        pairs -= unseen * (size.question_tokens + size.answer_tokens - 1)
    return (
        2 * weights * sum(one.tokens for one in forwards)
        + 4 * pairs * size.hidden * size.layers
        + 2 * rows * size.hidden * size.vocabulary
    )


def start_of_peak(device: torch.device) -> int:
    """Forget earlier peaks; gives what is held now, in bytes."""
    if device.type != "cuda":
        return 0
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    return int(torch.cuda.memory_allocated(device))


def peak_gib(device: torch.device, loaded: int) -> float | None:
    return (torch.cuda.max_memory_allocated(device) - loaded) / 2**30 if device.type == "cuda" else None


def brief(found: Any) -> str:
    """Findings on one line."""
    if isinstance(found, dict):
        return ", ".join(f"{name} {brief(value)}" for name, value in found.items())
    return f"{found:.3g}" if isinstance(found, float) else str(found)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows for reading."""
    lines = ["way                method         tokens answers/s ms/answer   head TFLOP/s of card peak GiB"]
    for row in rows:
        peak = row["peak_gib_over_model"]
        lines.append(
            f"{row['way']:<18} {row['method']:<13} {row['tokens_a_forward']:>7} {row['answers_per_s']:>9.4g}"
            f" {row['ms_per_answer']:>9.3g} {row['share_of_head_and_divergences']:>6.1%} {row['tflop_per_s']:>7.3g}"
            f" {row['share_of_matrix_rate']:>7.1%} {'-' if peak is None else f'{peak:.2f}':>8}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
