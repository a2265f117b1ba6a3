"""The scorer's logic on tiny models: exactness against plain re-scoring, independence of neighbours, truncation."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from gasp_core.errors import ModelUnsupported
from gasp_core.grounding import AnswerGrounding, AnswerSkip, Exchange, Method, Passage, SentenceSkip
from gasp_core.model import LanguageModel
from gasp_core.passes.choice import choose_passes
from gasp_core.plan import Limits, Plan, Removals, each_group, plan_exchange
from gasp_core.scorer import GroundingScorer
from gasp_core.support_search import MOST_GROUPS, MOST_PER_GROUP
from gasp_core.template import GASP_RAG, PLAIN, PromptTemplate
from gasp_core.text.chunks import context_chunks
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


def plans_of(
    exchange: Exchange, model: LanguageModel, removals: Removals = each_group, *, masked: bool = False
) -> tuple[Plan, ...]:
    chunks = context_chunks(exchange.passages, 5)
    return plan_exchange(
        exchange, chunks, model=model, template=PLAIN, limits=Limits(), removals=removals, masked=masked
    )


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2", "gemma2"])
@pytest.mark.parametrize("template", [PLAIN, GASP_RAG], ids=lambda template: template.name)
def test_features_are_those_of_plainly_re_scored_prompts(
    family: str, template: PromptTemplate, tiny_model_of: Callable[[str], LanguageModel]
) -> None:
    model = tiny_model_of(family)
    result = GroundingScorer(model, template=template).score([MUSEUM], Method.LEAVE_ONE_OUT)[0]
    (plan,) = plan_exchange(
        MUSEUM,
        context_chunks(MUSEUM.passages, 5),
        model=model,
        template=template,
        limits=Limits(),
        removals=each_group,
    )
    full, none, *without = (plain_log_probability(model, prompt, plan.answer_ids) for prompt in plan.prompts)
    first = list(range(result.sentences[0].n_tokens))
    sentence = result.sentences[0]
    assert sentence.gap == pytest.approx(float((full - none)[first].mean()), abs=TOLERANCE)
    assert sentence.surprisal == pytest.approx(-float(full[first].mean()), abs=TOLERANCE)
    for drop, other in zip(sentence.drops, without, strict=True):
        assert drop.drop == pytest.approx(float((full - other)[first].mean()), abs=TOLERANCE)


def test_the_removal_of_a_chunk_removes_exactly_its_tokens(tiny_model: LanguageModel) -> None:
    whole = plans_of(MUSEUM, tiny_model)[0].prompts
    for index, prompt in enumerate(whole[2:]):
        kept = tuple(passage for at, passage in enumerate(MUSEUM.passages) if at != index)
        # Two passages or more are their own chunks, so the shorter exchange is laid out alike.
        assert prompt == plans_of(replace(MUSEUM, passages=kept), tiny_model)[0].prompts[0]


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
    exchanges = [MUSEUM, REFUND] * 16
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


def test_the_prompts_of_leave_one_out_are_bounded_whatever_the_number_of_passages(tiny_model: LanguageModel) -> None:
    passages = tuple(Passage(f"p{number}", f"Room {number} has {number * 7} chairs.") for number in range(300))
    exchange = Exchange("Which room has seven chairs?", passages, "Room 1 has 7 chairs.")
    read: list[int] = []
    plain = choose_passes(tiny_model).passes

    class Counting:
        can_hide, forget, reading = plain.can_hide, plain.forget, plain.reading

        def answer_states(self, plans: Sequence[Plan]) -> list[torch.Tensor]:
            read.append(sum(len(plan.removals) for plan in plans))
            return plain.answer_states(plans)

    (found,) = GroundingScorer(tiny_model, passes=Counting()).score([exchange], Method.LEAVE_ONE_OUT)
    assert found.n_windows > 1
    assert read[0] <= MOST_GROUPS + found.n_windows
    assert sum(read) <= (1 + MOST_PER_GROUP) * (MOST_GROUPS + found.n_windows)
    assert {chunk.group for chunk in found.chunks} == set(range(MOST_GROUPS + 1))


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
        (Exchange("q", MUSEUM.passages, "👍"), AnswerSkip.NOTHING_TO_SCORE),
        (Exchange("q", MUSEUM.passages, "Here are the hours:"), AnswerSkip.NOTHING_TO_SCORE),
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


def rooms(number: int) -> tuple[Passage, ...]:
    return tuple(Passage(str(room), f"Room {room} of the museum opens at nine. " * 3) for room in range(number))


def test_a_context_past_the_window_is_read_in_windows_of_whole_chunks(tiny_model: LanguageModel) -> None:
    exchange = Exchange("When?", rooms(40), MUSEUM.answer)
    scorer = GroundingScorer(tiny_model)
    result = scorer.score([exchange], Method.LEAVE_ONE_OUT)[0]
    plans = plans_of(exchange, tiny_model)
    assert result.n_windows == len(plans) > 1
    assert not result.truncation.context_truncated
    assert [chunk for plan in plans for chunk in plan.chunks] == list(range(40))
    assert all(len(plan.prompts[0]) + len(plan.answer_ids) <= WINDOW_TOKENS for plan in plans)
    for index, sentence in enumerate(result.sentences):
        assert {drop.chunk for drop in sentence.drops} == set(plans[sentence.window].chunks)
        alone = [
            scorer.score([replace(exchange, passages=tuple(exchange.passages[chunk] for chunk in plan.chunks))])[0]
            for plan in plans
        ]
        gaps = [one.sentences[index].gap for one in alone]
        assert sentence.gap == pytest.approx(max(gap for gap in gaps if gap is not None), abs=TOLERANCE)


def test_a_chunk_that_alone_is_past_the_window_is_read_in_pieces(tiny_model: LanguageModel) -> None:
    long = Passage("long", "Every room of the museum opens at nine and closes at six, " * 60)
    exchange = Exchange("When?", (long, Passage("short", "Dogs must stay outside.")), MUSEUM.answer)
    plans = plans_of(exchange, tiny_model)
    assert [plan.chunks for plan in plans] == [(0,)] * (len(plans) - 1) + [(0, 1)]
    tail = tiny_model.encode(PLAIN.question_segment(exchange.question)).ids
    head = tiny_model.encode(PLAIN.head).ids
    read = [token for plan in plans for token in plan.prompts[0][len(head) : -len(tail)]]
    assert read == [
        token for text in (long.text + "\n\n", "Dogs must stay outside.\n\n") for token in tiny_model.encode(text).ids
    ]
    assert GroundingScorer(tiny_model).score([exchange])[0].truncation.context_tokens_cut == 0


def test_a_context_past_the_limit_is_cut_at_whole_chunks_and_said(tiny_model: LanguageModel) -> None:
    scorer = GroundingScorer(tiny_model, limits=Limits(max_context_tokens=200))
    result = scorer.score([Exchange("When?", rooms(40), MUSEUM.answer)], Method.LEAVE_ONE_OUT)[0]
    assert result.truncation.context_truncated
    assert not result.truncation.answer_truncated
    read = {drop.chunk for one in result.sentences for drop in one.drops}
    assert read == set(range(len(read)))
    assert 0 < len(read) < 40


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


def test_whatever_cuts_what_is_read_is_in_the_identity(tiny_model: LanguageModel) -> None:
    limits = [Limits(), Limits(64), Limits(65), Limits(None), Limits(64, 12), Limits(max_answer_tokens=12)]
    found = [GroundingScorer(tiny_model, limits=one).identity for one in limits]
    found.append(GroundingScorer(tiny_model, max_chunks=3).identity)
    assert len({(one, one.label) for one in found}) == len(found)
    assert {one.computation for one in found} == {found[0]}
    methods = ["gasp-3", "gasp-3 context-64", "gasp-3 context-65", "gasp-3 context-all", "gasp-3 context-64 answer-12"]
    assert [one.method for one in found] == [*methods, "gasp-3 answer-12", "gasp-3 chunks-3"]


def test_a_masked_chunk_is_hidden_from_question_and_answer_alone(tiny_model: LanguageModel) -> None:
    (plan,) = plans_of(MUSEUM, tiny_model, masked=True)
    scored = GroundingScorer(tiny_model, masked=True).score([MUSEUM], Method.LEAVE_ONE_OUT)[0].sentences[0]
    full = plain_log_probability(tiny_model, plan.prompts[0], plan.answer_ids)
    text = torch.tensor([plan.prompts[0] + plan.answer_ids])
    for drop, ((start, end),) in zip(scored.drops, plan.hidden[2:], strict=True):
        mask = torch.full((text.shape[1], text.shape[1]), -torch.inf).triu(1)
        mask[plan.context_end :, start:end] = -torch.inf
        with torch.inference_mode():
            logits = tiny_model.network(input_ids=text, attention_mask=mask[None, None]).logits[0]
        rows = torch.log_softmax(logits[len(plan.prompts[0]) - 1 : -1], -1)
        hidden = rows.gather(-1, torch.tensor(plan.answer_ids)[:, None])[:, 0]
        assert drop.drop == pytest.approx(float((full - hidden)[: scored.n_tokens].mean()), abs=TOLERANCE)


def test_masking_is_refused_where_it_cannot_be_done(tiny_model_of: Callable[[str], LanguageModel]) -> None:
    with pytest.raises(ValueError, match="to be masked"):
        GroundingScorer(tiny_model_of("llama"), template=GASP_RAG, masked=True)
    with pytest.raises(ModelUnsupported, match="shares no prefixes"):
        GroundingScorer(tiny_model_of("gemma2"), masked=True)
