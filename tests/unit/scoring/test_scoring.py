"""What becomes of a batch when the device has too little memory or an exchange breaks the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from gasp_core.errors import ModelOutOfMemory
from gasp_core.grounding import AnswerGrounding, Exchange, Passage
from gasp_core.model import LanguageModel
from gasp_core.passes.plain import PlainPasses
from gasp_core.plan import Limits, Plan
from gasp_core.scorer import GroundingScorer
from tests.alike import assert_alike
from worker.errors import ScorerBroken, ScorerUnavailable
from worker.ingest.scoring import Scoring, Unscorable
from worker.runtime.metrics import Metrics


class CrampedPasses(PlainPasses):
    """Run out of memory where a device would: when the prompts of one call have too many tokens together."""

    def __init__(self, model: LanguageModel, room_tokens: int) -> None:
        super().__init__(model, 2048)
        self.room_tokens = room_tokens
        self.forgotten = 0
        self.breaks_on_chars = 0

    def answer_states(self, plans: Sequence[Plan]) -> list[torch.Tensor]:
        """Fail, or do it."""
        if any(plan.answer_spans[-1][1] == self.breaks_on_chars for plan in plans):
            raise RuntimeError("device-side assert")
        if sum(len(prompt) + len(plan.answer_ids) for plan in plans for prompt in plan.prompts) > self.room_tokens:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().answer_states(plans)

    def forget(self) -> None:
        """Count."""
        self.forgotten += 1


def exchange(number: int, sentences: int = 1) -> Exchange:
    passages = tuple(
        Passage(f"p{at}", f"The museum {number} opens at nine and closes at six. " * 2) for at in range(sentences)
    )
    return Exchange("When does it open?", passages, f"It opens at nine. Ticket {number} costs twelve euros.")


def steps(metrics: Metrics) -> dict[str, float]:
    page = metrics.render()[0].decode()
    lines = [line for line in page.splitlines() if line.startswith("gasp_out_of_memory_steps_total{")]
    return {line.split('"')[1]: float(line.split()[-1]) for line in lines}


def gaps(grounding: AnswerGrounding | Unscorable) -> list[float | None]:
    assert isinstance(grounding, AnswerGrounding)
    return [one.gap for one in grounding.sentences]


@pytest.fixture
def passes(tiny_model: LanguageModel) -> CrampedPasses:
    return CrampedPasses(tiny_model, room_tokens=10**9)


def scoring_with(model: LanguageModel, passes: CrampedPasses, metrics: Metrics) -> Scoring:
    return Scoring(GroundingScorer(model, passes=passes), metrics)


def test_a_batch_that_does_not_fit_is_halved_until_it_does(tiny_model: LanguageModel, passes: CrampedPasses) -> None:
    exchanges = [exchange(number) for number in range(8)]
    expected = [gaps(one) for one in GroundingScorer(tiny_model).score(exchanges)]
    metrics = Metrics()
    passes.room_tokens = 500
    found = scoring_with(tiny_model, passes, metrics).score(exchanges)
    assert_alike([gaps(one) for one in found], expected)
    assert steps(metrics)["halved"] > 0
    assert steps(metrics)["refused"] == 0
    assert passes.forgotten > 0


def test_an_exchange_that_does_not_fit_alone_is_cut_and_says_how_much(
    tiny_model: LanguageModel, passes: CrampedPasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.ingest.scoring.SHORTER_CONTEXTS", (64, 16))
    metrics = Metrics()
    passes.room_tokens = 180
    small, large = exchange(1), exchange(2, sentences=6)
    first, second = scoring_with(tiny_model, passes, metrics).score([small, large])
    assert isinstance(first, AnswerGrounding)
    assert isinstance(second, AnswerGrounding)
    assert first.truncation.context_tokens_cut == 0
    assert second.truncation.context_tokens_cut > 0
    assert all(sentence.gap is not None for sentence in second.sentences)
    assert steps(metrics)["truncated"] == 1


def test_an_exchange_that_fits_in_no_way_is_refused_and_its_neighbours_are_scored(
    tiny_model: LanguageModel, passes: CrampedPasses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.ingest.scoring.SHORTER_CONTEXTS", (64,))
    metrics = Metrics()
    long_answer = Exchange("When?", exchange(1).passages, "It opens at nine. " * 24)
    passes.room_tokens = 250
    found = scoring_with(tiny_model, passes, metrics).score([exchange(1), long_answer, exchange(2)])
    assert found[1] == Unscorable("ModelOutOfMemory")
    assert isinstance(found[0], AnswerGrounding)
    assert isinstance(found[2], AnswerGrounding)
    assert steps(metrics)["refused"] == 1


def test_a_device_without_memory_for_anything_is_no_fault_of_a_message(
    tiny_model: LanguageModel, passes: CrampedPasses
) -> None:
    passes.room_tokens = 1
    with pytest.raises(ScorerUnavailable):
        scoring_with(tiny_model, passes, Metrics()).score([exchange(1), exchange(2)])


def test_an_exchange_that_breaks_the_model_is_found_and_the_others_are_scored(
    tiny_model: LanguageModel, passes: CrampedPasses
) -> None:
    exchanges = [exchange(number) for number in range(5)]
    exchanges[3] = Exchange("When?", exchanges[3].passages, exchanges[3].answer + " Really.")
    passes.breaks_on_chars = len(exchanges[3].answer)
    found = scoring_with(tiny_model, passes, Metrics()).score(exchanges)
    assert [isinstance(one, Unscorable) for one in found] == [False, False, False, True, False]
    assert found[3] == Unscorable("RuntimeError")


def test_a_model_that_fails_on_everything_ends_the_worker_and_decides_nothing(tiny_model: LanguageModel) -> None:
    class Broken(GroundingScorer):
        def score(self, *_: object) -> list[AnswerGrounding]:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    scoring = Scoring(Broken(tiny_model), Metrics())
    with pytest.raises(ScorerBroken, match="restart"):
        scoring.score([exchange(1), exchange(2)])
    with pytest.raises(ScorerBroken):
        scoring.attribute(exchange(1))


def test_a_scorer_says_that_memory_ran_out_in_its_own_words(tiny_model: LanguageModel, passes: CrampedPasses) -> None:
    passes.room_tokens = 1
    with pytest.raises(ModelOutOfMemory, match="2 exchanges"):
        GroundingScorer(tiny_model, passes=passes).score([exchange(1), exchange(2)])


def test_a_scorer_within_limits_leaves_the_other_as_it_was_and_says_so_in_its_identity(
    tiny_model: LanguageModel,
) -> None:
    scorer = GroundingScorer(tiny_model)
    tight = scorer.within(Limits(8))
    (grounding,) = tight.score([exchange(1)])
    assert grounding.truncation.context_tokens_cut > 0
    assert tight.identity == replace(scorer.identity, method=f"{scorer.identity.method} context-8")
    assert scorer.score([exchange(1)])[0].truncation.context_tokens_cut == 0
