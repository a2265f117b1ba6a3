"""The scorer's logic on tiny models: exactness against plain re-scoring, independence of neighbours, truncation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch

from gasp_core.chunks import context_chunks
from gasp_core.grounding import AnswerGrounding, AnswerSkip, Exchange, Method, Passage, SentenceSkip
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import choose_passes
from gasp_core.plan import Limits, plan_exchange
from gasp_core.scorer import GroundingScorer
from gasp_core.template import GASP_RAG, PLAIN, PromptTemplate
from tests.models import WINDOW_TOKENS

TOLERANCE = 1e-4

MUSEUM = Exchange(
    "When does the museum open?",
    (
        Passage("hours", "The museum opens at nine and closes at six."),
        Passage("prices", "Tickets cost twelve euros; children pay nothing."),
        Passage("dogs", "Dogs must stay outside."),
    ),
    "The museum opens at nine. A ticket costs twelve euros. There is a café on the roof.",
)
REFUND = Exchange(
    "Can I get a refund?",
    (Passage("refunds", "Refunds are possible within 30 days. Gift cards are excluded. Bring the receipt."),),
    "Yes, within 30 days.\n\n- Bring the receipt.\n- Gift cards are excluded.",
)


def features(grounding: AnswerGrounding) -> list[float]:
    numbers = []
    for sentence in grounding.sentences:
        numbers += [value for value in (sentence.gap, sentence.jsd_no_context, sentence.surprisal) if value is not None]
        numbers += [value for drop in sentence.drops for value in (drop.drop, drop.jsd)]
    return numbers


@torch.inference_mode()
def plain_log_probability(model: LanguageModel, prompt: Sequence[int], answer: Sequence[int]) -> torch.Tensor:
    """Re-score a whole text the plain way, through the model's own forward."""
    logits = model.network(input_ids=torch.tensor([[*prompt, *answer]])).logits[0].float()
    rows = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
    return rows.gather(-1, torch.tensor(answer)[:, None])[:, 0]


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2", "gemma2"])
@pytest.mark.parametrize("template", [PLAIN, GASP_RAG], ids=lambda template: template.name)
def test_features_are_those_of_plainly_re_scored_prompts(
    family: str, template: PromptTemplate, tiny_model_of: Callable[[str], LanguageModel]
) -> None:
    model = tiny_model_of(family)
    result = GroundingScorer(model, template=template).score([MUSEUM], Method.LEAVE_ONE_OUT)[0]
    plan = plan_exchange(
        MUSEUM,
        context_chunks(MUSEUM.passages, 5),
        model=model,
        template=template,
        limits=Limits(),
        leave_one_out=True,
    )
    assert plan is not None
    full, none, *without = (plain_log_probability(model, prompt, plan.answer_ids) for prompt in plan.prompts)
    first = list(range(result.sentences[0].n_tokens))
    sentence = result.sentences[0]
    assert sentence.gap == pytest.approx(float((full - none)[first].mean()), abs=TOLERANCE)
    assert sentence.surprisal == pytest.approx(-float(full[first].mean()), abs=TOLERANCE)
    for drop, other in zip(sentence.drops, without, strict=True):
        assert drop.drop == pytest.approx(float((full - other)[first].mean()), abs=TOLERANCE)


def test_the_removal_of_a_chunk_removes_exactly_its_tokens(tiny_model: LanguageModel) -> None:
    def prompts_of(exchange: Exchange, *, leave_one_out: bool) -> tuple[list[int], ...]:
        chunks = context_chunks(exchange.passages, 5)
        plan = plan_exchange(
            exchange, chunks, model=tiny_model, template=PLAIN, limits=Limits(), leave_one_out=leave_one_out
        )
        assert plan is not None
        return plan.prompts

    whole = prompts_of(MUSEUM, leave_one_out=True)
    for index, prompt in enumerate(whole[2:]):
        kept = tuple(passage for at, passage in enumerate(MUSEUM.passages) if at != index)
        # Two passages or more are their own chunks, so the shorter exchange is laid out alike.
        assert prompt == prompts_of(Exchange(MUSEUM.question, kept, MUSEUM.answer), leave_one_out=False)[0]


def test_two_passes_and_leave_one_out_agree_on_what_both_compute(tiny_model: LanguageModel) -> None:
    scorer = GroundingScorer(tiny_model)
    two = scorer.score([MUSEUM])[0]
    full = scorer.score([MUSEUM], Method.LEAVE_ONE_OUT)[0]
    for left, right in zip(two.sentences, full.sentences, strict=True):
        assert left.gap == pytest.approx(right.gap, abs=TOLERANCE)
        assert left.drops == ()
        assert len(right.drops) == len(MUSEUM.passages)


@pytest.mark.parametrize("size", [1, 2, 8, 32])
def test_a_score_does_not_depend_on_its_neighbours(tiny_model: LanguageModel, size: int) -> None:
    exchanges = [MUSEUM, REFUND] * 4
    random.Random(size).shuffle(exchanges)
    batched = GroundingScorer(tiny_model)
    passes = choose_passes(tiny_model, max_tokens=1, cache_bytes=0).passes
    alone = {id(one): GroundingScorer(tiny_model, passes=passes).score([one])[0] for one in (MUSEUM, REFUND)}
    for start in range(0, len(exchanges), size):
        group = exchanges[start : start + size]
        for exchange, result in zip(group, batched.score(group), strict=True):
            assert features(result) == pytest.approx(features(alone[id(exchange)]), abs=TOLERANCE)


def test_identical_passages_are_removed_together(tiny_model: LanguageModel) -> None:
    first, *rest = MUSEUM.passages
    doubled = Exchange(
        MUSEUM.question, (first, *rest, Passage("copy", "The museum opens at  nine and closes at six.")), MUSEUM.answer
    )
    drops = GroundingScorer(tiny_model).score([doubled], Method.LEAVE_ONE_OUT)[0].sentences[0].drops
    assert len(drops) == 4
    assert drops[0].drop == drops[3].drop
    assert drops[0].drop != drops[1].drop


def test_every_unit_of_an_answer_is_listed_once_and_the_units_tile_it(tiny_model: LanguageModel) -> None:
    answer = "# Hours\n\nThe museum opens at nine. Yes.\n\n```\nopen(9)\n```\n"
    result = GroundingScorer(tiny_model).score([Exchange("", MUSEUM.passages, answer)])[0]
    assert "".join(answer[one.sentence.start : one.sentence.end] for one in result.sentences) == answer
    assert [one.index for one in result.sentences] == list(range(len(result.sentences)))
    reasons = {one.skip_reason for one in result.sentences}
    assert {SentenceSkip.HEADING, SentenceSkip.CODE, None} <= reasons
    assert all((one.gap is None) == (one.skip_reason is not None) for one in result.sentences)


@pytest.mark.parametrize(
    ("exchange", "reason"),
    [
        (Exchange("q", MUSEUM.passages, ""), AnswerSkip.EMPTY_ANSWER),
        (Exchange("q", MUSEUM.passages, " \n\t"), AnswerSkip.EMPTY_ANSWER),
        (Exchange("q", (), "The museum opens at nine."), AnswerSkip.NO_PASSAGES),
        (Exchange("q", (Passage("a", "  "), Passage("b", "")), "The museum opens at nine."), AnswerSkip.NO_PASSAGES),
        (Exchange("q", MUSEUM.passages, "I don't know."), AnswerSkip.REFUSAL),
        (Exchange("q", MUSEUM.passages, "A"), AnswerSkip.NOTHING_TO_SCORE),
        (Exchange("why " * 400, MUSEUM.passages, "The museum opens at nine."), AnswerSkip.QUESTION_TOO_LONG),
    ],
)
def test_an_answer_that_cannot_be_scored_says_why(
    tiny_model: LanguageModel, exchange: Exchange, reason: AnswerSkip
) -> None:
    result = GroundingScorer(tiny_model).score([exchange])[0]
    assert result.skip_reason is reason
    assert result.lowest_gap is None
    assert all(sentence.skip_reason is not None for sentence in result.sentences)
    assert (
        "".join(exchange.answer[one.sentence.start : one.sentence.end] for one in result.sentences) == exchange.answer
    )


def test_a_context_past_the_window_is_cut_at_whole_chunks_and_said(tiny_model: LanguageModel) -> None:
    long = tuple(Passage(str(number), f"Room {number} of the museum opens at nine. " * 3) for number in range(40))
    result = GroundingScorer(tiny_model).score([Exchange("When?", long, MUSEUM.answer)], Method.LEAVE_ONE_OUT)[0]
    assert result.truncation.context_truncated
    assert not result.truncation.answer_truncated
    read = {drop.chunk for drop in result.sentences[0].drops}
    assert read == set(range(len(read)))
    assert 0 < len(read) < len(long)


def test_an_answer_past_the_window_lists_its_end_as_unscored(tiny_model: LanguageModel) -> None:
    answer = "The museum opens at nine. " * 200
    result = GroundingScorer(tiny_model).score([Exchange("When?", MUSEUM.passages, answer)])[0]
    assert result.truncation.answer_truncated
    assert result.truncation.answer_tokens > WINDOW_TOKENS
    reasons = [sentence.skip_reason for sentence in result.sentences]
    assert reasons[0] is None
    assert reasons[-1] is SentenceSkip.PAST_WINDOW
    assert reasons == sorted(reasons, key=lambda reason: reason is not None)


def test_limits_below_the_window_are_kept(tiny_model: LanguageModel) -> None:
    scorer = GroundingScorer(tiny_model, limits=Limits(max_context_tokens=30, max_answer_tokens=12))
    truncation = scorer.score([MUSEUM])[0].truncation
    assert truncation.context_tokens - truncation.context_tokens_cut <= 30
    assert truncation.answer_tokens - truncation.answer_tokens_cut == 12


def test_scoring_leaves_gradients_on(tiny_model: LanguageModel) -> None:
    GroundingScorer(tiny_model).score([MUSEUM])
    assert torch.is_grad_enabled()


def test_the_identity_names_everything_that_a_score_depends_on(tiny_model: LanguageModel) -> None:
    identity = GroundingScorer(tiny_model, template=GASP_RAG).identity
    assert (identity.model, identity.dtype, identity.template) == ("tiny-llama", "float32", "gasp-rag-0.2")
    assert identity != GroundingScorer(tiny_model).identity
