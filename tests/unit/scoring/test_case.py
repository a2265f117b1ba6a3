"""Cases and their spans, and the scorer of cases on a tiny model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gasp_core import Case, Scorer, chunk_spans, sentence_spans
from gasp_core.grounding import Exchange, Method, Passage
from gasp_core.model import LanguageModel
from gasp_core.scorer import GroundingScorer
from tests.alike import assert_alike
from tests.models import save_model

CONTEXT = "The museum opens at nine. Tickets cost twelve euros. Dogs must stay outside. Children pay nothing."
ANSWER = "# Visit\n\nThe museum opens at nine. Tickets cost twelve euros."

texts = st.lists(st.sampled_from(["It rains. ", "No! ", "# Title\n\n", "- an item\n", "\n\n", " ", "雨。"])).map(
    "".join
)


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Scorer:
    return Scorer(str(save_model(tmp_path_factory.mktemp("case") / "tiny")), device="cpu", dtype="float32")


def test_a_case_knows_its_sentences_and_chunks() -> None:
    case = Case.from_texts(CONTEXT, ANSWER, "When?", k_chunks=2)
    assert (case.query, case.context, case.answer) == ("When?", CONTEXT, ANSWER)
    assert (case.n_sentences, case.n_chunks) == (3, 2)
    assert [case.sentence(j) for j in range(3)] == [
        "# Visit\n\n",
        "The museum opens at nine. ",
        "Tickets cost twelve euros.",
    ]
    assert case.chunk(0) + case.chunk(1) == CONTEXT
    with pytest.raises(IndexError):
        case.sentence(3)


@given(texts, texts, st.integers(1, 6))
def test_the_spans_of_a_case_tile_its_texts(context: str, answer: str, k_chunks: int) -> None:
    case = Case.from_texts(context, answer, k_chunks=k_chunks)
    assert "".join(map(case.sentence, range(case.n_sentences))) == answer
    assert "".join(map(case.chunk, range(case.n_chunks))) == (context if context.strip() else "")
    assert case.n_chunks <= k_chunks
    assert (case.sent_spans, case.chunk_spans) == (sentence_spans(answer), chunk_spans(context, k_chunks))


def test_texts_that_are_not_there_are_empty() -> None:
    assert Case.from_texts(None, None, None) == Case("", "", "")


def test_fewer_than_one_chunk_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        chunk_spans(CONTEXT, 0)


@pytest.mark.parametrize("k_chunks", [1, 3, 9])
def test_a_case_is_scored_as_the_grounding_scorer_scores_it(
    scorer: Scorer, tiny_model: LanguageModel, k_chunks: int
) -> None:
    case = Case.from_texts(CONTEXT, ANSWER, "When?", k_chunks=k_chunks)
    exchange = Exchange("When?", (Passage("p", CONTEXT),), ANSWER)
    (expected,) = GroundingScorer(tiny_model, max_chunks=k_chunks).score([exchange], Method.LEAVE_ONE_OUT)
    assert [(chunk.start, chunk.end) for chunk in expected.chunks] == list(case.chunk_spans)
    scores = scorer.score(case)
    assert [score.text for score in scores] == [case.sentence(j) for j in range(case.n_sentences)]
    for score, one in zip(scores, expected.sentences, strict=True):
        assert (score.index, score.n_tokens, score.skip_reason) == (one.index, one.n_tokens, one.skip_reason)
        assert score.gap == pytest.approx(one.gap, abs=1e-5)
        assert score.chunk_drops == pytest.approx(tuple(drop.drop for drop in one.drops), abs=1e-5)
        assert score.attributed_chunk == (-1 if one.supporting_chunk is None else one.supporting_chunk)


def test_features_sum_the_drops_up(scorer: Scorer) -> None:
    score = scorer.score(Case.from_texts(CONTEXT, ANSWER, k_chunks=4))[1]
    drops = sorted((drop for drop in score.chunk_drops if drop is not None), reverse=True)
    assert len(drops) == len(score.chunk_drops) == 4
    assert score.max_drop == drops[0]
    assert score.top2_drop == pytest.approx((drops[0] + drops[1]) / 2)
    assert score.mean_drop == pytest.approx(sum(drops) / 4)
    assert score.features == {
        name: getattr(score, name)
        for name in ("gap", "jsd_noctx", "max_drop", "mean_drop", "top2_drop", "max_jsd", "n_tokens")
    }


def test_two_passes_compute_nothing_about_chunks(scorer: Scorer) -> None:
    case = Case.from_texts(CONTEXT, ANSWER)
    full, quick = scorer.score(case)[1], scorer.score(case, leave_one_out=False)[1]
    assert quick.gap == pytest.approx(full.gap, abs=1e-5)
    assert (quick.max_drop, quick.mean_drop, quick.top2_drop, quick.max_jsd) == (None,) * 4
    assert (quick.chunk_drops, quick.attributed_chunk) == ((), -1)


def test_a_sentence_without_features_says_why(scorer: Scorer) -> None:
    heading = scorer.score(Case.from_texts(CONTEXT, ANSWER))[0]
    assert (heading.skip_reason, heading.gap, heading.chunk_drops) == ("heading", None, ())
    assert heading.n_tokens > 0
    blank = scorer.score(Case.from_texts(" ", ANSWER))
    assert {score.skip_reason for score in blank} == {"no_passages"}


def test_a_chunk_that_was_not_read_has_no_drop_and_the_others_keep_their_places(tmp_path: Path) -> None:
    short = Scorer(str(save_model(tmp_path / "tiny")), device="cpu", max_ctx_tokens=18)
    score = short.score(Case.from_texts(CONTEXT, ANSWER, k_chunks=4))[1]
    assert [drop is None for drop in score.chunk_drops] == [False, False, False, True]


def test_spans_of_other_texts_are_refused(scorer: Scorer) -> None:
    case = Case.from_texts(CONTEXT, ANSWER)
    for wrong in (
        replace(case, sent_spans=((0, 5),)),
        replace(case, chunk_spans=((0, 5),)),
        replace(case, answer="No."),
    ):
        with pytest.raises(ValueError, match=r"Case\.from_texts"):
            scorer.score(wrong)


def test_spans_may_come_as_lists(scorer: Scorer) -> None:
    case = Case.from_texts(CONTEXT, ANSWER)
    listed = replace(case, sent_spans=list(case.sent_spans), chunk_spans=list(case.chunk_spans))  # type: ignore[arg-type]
    assert_alike(scorer.score(listed), scorer.score(case))


def test_half_a_surrogate_pair_is_scored_and_stays_in_the_text(scorer: Scorer) -> None:
    (score,) = scorer.score(Case.from_texts("The sign says \ud83d here.", "The sign says \udc00 here.", "\ud800?"))
    assert score.text == "The sign says \udc00 here."
    assert score.gap is not None


@pytest.mark.parametrize("limits", [{"max_ctx_tokens": 0}, {"max_ans_tokens": -1}])
def test_a_limit_below_one_is_refused_before_a_model_is_loaded(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        Scorer("no-such-model", **limits)  # type: ignore[arg-type]  # a mapping of keywords
