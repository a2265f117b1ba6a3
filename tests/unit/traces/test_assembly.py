from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.envelope import JsonObject
from schemas.skip_reason import SkipReason
from schemas.traces.assembly import assemble
from schemas.traces.step import Document, Step, StepKind
from tests.bars import bar
from tests.unit.traces.steps import MILK, TEA, TRACE, chain, llm, rag, reranker, retriever, step


def exchanges_of(steps: Iterable[Step], **texts: str) -> tuple[JsonObject, ...]:
    return assemble(steps, TRACE, texts).exchanges


def only(steps: Iterable[Step], **texts: str) -> JsonObject:
    (exchange,) = exchanges_of(steps, **texts)
    return exchange


def reason_of(steps: Iterable[Step]) -> SkipReason | None:
    return assemble(steps, TRACE).reason


def ids_of(exchange: JsonObject) -> list[JsonValue]:
    passages = exchange["passages"]
    assert isinstance(passages, list)
    return [passage["id"] for passage in passages if isinstance(passage, dict)]


def metadata_of(exchange: JsonObject) -> JsonObject:
    metadata = exchange["metadata"]
    assert isinstance(metadata, dict)
    return metadata


def without(steps: Iterable[Step], *step_ids: str) -> list[Step]:
    return [one for one in steps if one.id not in step_ids]


def test_a_chain_above_a_retriever_and_a_model_is_an_exchange() -> None:
    assembly = assemble(rag(), TRACE)
    assert assembly.exchanges == (
        {
            "interaction_id": TRACE,
            "app": "tea-room",
            "occurred_at": 10,
            "question": "How is tea drunk?",
            "passages": [
                {"id": "d-1", "text": "Tea is drunk hot.", "score": 0.9, "metadata": {}},
                {"id": "d-2", "text": "Milk is drunk cold.", "score": 0.5, "metadata": {}},
            ],
            "answer": "Hot.",
            "generator_model": "m-1",
            "metadata": {"trace_id": TRACE, "span_id": "root", "user": "u-1"},
        },
    )
    assert (assembly.reason, assembly.is_complete, assembly.wanted) == (None, True, ())


KINDS = st.sampled_from(StepKind)
NAMES = st.sampled_from([f"s{number}" for number in range(8)])
TEXTS = st.none() | st.sampled_from(["A", "B", "C"])
DOCUMENTS = st.builds(Document, text=TEXTS, id=TEXTS, score=st.none() | st.just(0.5))
STEPS = st.builds(
    Step,
    id=NAMES,
    order=st.tuples(st.integers(0, 1), st.integers(0, 2)),
    parent=st.none() | NAMES,
    is_root=st.none() | st.booleans(),
    kind=st.none() | KINDS,
    begun_ns=st.none() | st.integers(0, 3),
    ended_ns=st.none() | st.integers(0, 3),
    has_failed=st.none() | st.booleans(),
    question=TEXTS,
    answer=TEXTS,
    documents=st.none() | st.lists(DOCUMENTS, max_size=3).map(tuple),
    context=TEXTS,
    prompt=TEXTS,
    app=TEXTS,
    metadata=st.dictionaries(st.sampled_from(["user", "x"]), TEXTS, max_size=2),
)


@given(st.lists(STEPS, max_size=12), st.data())
def test_neither_the_order_nor_the_repetition_of_reports_changes_what_they_make(
    steps: list[Step], data: st.DataObject
) -> None:
    again = [one.model_copy(deep=True) for one in data.draw(st.lists(st.sampled_from(steps)) if steps else st.just([]))]
    shuffled = data.draw(st.permutations([*steps, *again]))
    assert assemble(shuffled, TRACE) == assemble(steps, TRACE)


@given(st.lists(STEPS, max_size=12))
def test_a_trace_has_exchanges_or_a_reason_and_each_exchange_a_name_of_its_own(steps: list[Step]) -> None:
    assembly = assemble(steps, TRACE)
    assert (assembly.reason is None) == bool(assembly.exchanges)
    names = [exchange["interaction_id"] for exchange in assembly.exchanges]
    assert len(names) == len({*map(str, names)})
    assert all(str(exchange["answer"]).strip() for exchange in assembly.exchanges)


@given(st.permutations(rag()), st.integers(0, 3))
def test_a_trace_is_complete_as_soon_as_its_root_is_there(steps: list[Step], seen: int) -> None:
    assert assemble(steps[:seen], TRACE).is_complete == (
        seen == len(steps) or {one.id for one in steps[:seen]} >= {"root"}
    )


def test_reports_of_a_step_are_put_together_field_by_field() -> None:
    started = chain("root", question="Is tea hot?", order=(0, 1), ended_ns=None, metadata={"user": "u-1", "a": 1})
    ended = step("root", None, StepKind.OTHER, order=(1, 2), begun_ns=None, answer="Yes.", metadata={"a": 2})
    exchange = only([ended, started, *rag()[1:]])
    assert (exchange["question"], exchange["answer"]) == ("Is tea hot?", "Yes.")
    assert metadata_of(exchange) == {"trace_id": TRACE, "span_id": "root", "user": "u-1", "a": 2}


def test_a_step_is_told_apart_only_by_the_later_report() -> None:
    early, late = chain("root", answer="Cold.", order=(0, 9)), chain("root", answer="Hot.", order=(1, 0))
    assert only([late, early, *rag()[1:]])["answer"] == "Hot."


@pytest.mark.parametrize(
    ("steps", "is_complete"),
    [
        (rag(), True),
        (without(rag(), "found"), True),
        (without(rag(), "root"), False),
        ([chain("root", ended_ns=None), *rag()[1:]], False),
        ([chain("root", parent="elsewhere", is_root=True), *rag()[1:]], True),
        ([*rag(), llm("more", "unseen")], False),
        ([*rag(), Step(id="told of in a log only", answer="Hot.")], False),
        ([*rag(), chain("a", "b"), chain("b", "a")], False),
        ([*rag(), chain("self", "self")], False),
        ([*rag(), chain("other", ended_ns=None)], False),
        ([], False),
    ],
)
def test_complete_is_a_trace_with_its_root_over_and_every_parent_seen(steps: list[Step], *, is_complete: bool) -> None:
    assert assemble(steps, TRACE).is_complete is is_complete


# What counts as found.


def test_of_nested_retrievers_the_outermost_that_has_documents_counts() -> None:
    inner = retriever("inner", "outer", Document(text="Tea.", id="raw"))
    outer = retriever("outer", "root", TEA)
    assert ids_of(only([chain("root", answer="Hot."), outer, inner])) == ["d-1"]
    silent = retriever("outer", "root").model_copy(update={"documents": None})
    assert ids_of(only([chain("root", answer="Hot."), silent, inner])) == ["raw"]
    named = retriever("outer", "root", Document(id="d-1"))
    assert ids_of(only([chain("root", answer="Hot."), named, retriever("inner", "outer", TEA)])) == ["d-1"]


def test_several_retrievers_are_united_in_order_of_time_and_duplicates_go() -> None:
    steps = [
        chain("root", answer="Hot."),
        retriever("second", "root", MILK, TEA, Document(text="Water is wet."), at=3),
        retriever("first", "root", Document(text="Tea is drunk hot."), Document(text="Salt.", metadata={"_id": "d-7"})),
    ]
    assert ids_of(only(steps)) == ["d-7", "d-2", "d-1", "ctx-4"]


def test_a_document_that_is_named_by_its_place_is_the_same_as_one_with_an_id() -> None:
    placed = TEA.model_copy(update={"id": "tea.md#2", "metadata": {"source": "tea.md", "page": 2}})
    steps = [chain("root", answer="Hot."), retriever("a", "root", placed), retriever("b", "root", TEA)]
    assert ids_of(only(steps)) == ["d-1"]
    assert ids_of(only(steps[:2])) == ["tea.md#2"]


def test_one_id_with_two_texts_is_two_passages() -> None:
    steps = [chain("root", answer="Hot."), retriever("found", "root", TEA, TEA.model_copy(update={"text": "More."}))]
    assert ids_of(only(steps)) == ["d-1", "d-1"]


def test_a_reranker_stands_for_what_it_was_given() -> None:
    both = [chain("root", answer="Hot."), retriever("a", "root", TEA), retriever("b", "root", MILK)]
    assert ids_of(only([*both, reranker("best", "root", MILK)])) == ["d-2"]
    assert ids_of(only([*both, reranker("nothing", "root")])) == []
    later = retriever("later", "root", Document(text="Salt.", id="d-7"), at=8)
    assert ids_of(only([*both, reranker("best", "root", MILK), later])) == ["d-2", "d-7"]


def test_a_second_reranker_stands_for_the_first_if_that_has_all_that_it_has() -> None:
    steps = [chain("root", answer="Hot."), retriever("a", "root", TEA, MILK), reranker("one", "root", TEA, MILK)]
    assert ids_of(only([*steps, reranker("two", "root", MILK, at=4)])) == ["d-2"]
    salt = Document(text="Salt.", id="d-7")
    assert ids_of(only([*steps, reranker("two", "root", salt, at=4)])) == ["d-1", "d-2", "d-7"]


def test_documents_that_a_chain_kept_count_where_no_retriever_says_what_it_found() -> None:
    root = chain("root", question="Q", answer="Hot.", documents=(TEA,))
    assert ids_of(only([root])) == ["d-1"]
    assert ids_of(only([root, retriever("found", "root", MILK)])) == ["d-2"]


def test_a_retriever_that_found_nothing_makes_an_exchange_without_passages() -> None:
    assert ids_of(only([chain("root", answer="Hot."), retriever("found", "root")])) == []
    failed = retriever("found", "root", has_failed=True, documents=None)
    assert ids_of(only([chain("root", answer="Hot."), failed])) == []


# Which steps belong together.


def test_each_outermost_chain_above_a_retriever_is_an_exchange() -> None:
    steps = [
        step("web"),
        *(one.model_copy(update={"parent": one.parent or "web", "is_root": False}) for one in rag()),
        chain("again", "web", at=20, question="And milk?", answer="Cold."),
        retriever("found again", "again", MILK, at=21),
    ]
    first, second = exchanges_of(steps)
    assert [first["interaction_id"], second["interaction_id"]] == [TRACE, f"{TRACE}:again"]
    assert (second["question"], second["answer"], ids_of(second)) == ("And milk?", "Cold.", ["d-2"])
    assert metadata_of(second)["span_id"] == "again"


def test_chains_below_a_chain_are_part_of_it() -> None:
    steps = [
        chain("session", question="Tea?", answer="Hot."),
        chain("one", "session", answer="a note"),
        retriever("found", "one", TEA),
        chain("two", "session", answer="another note"),
        retriever("found too", "two", MILK),
    ]
    assert ids_of(only(steps)) == ["d-1", "d-2"]


def test_without_a_chain_the_exchange_is_the_whole_trace() -> None:
    web = step("web", app="tea-room", metadata={"session": "s-1"})
    exchange = only([web, retriever("found", "web", TEA, question="Is tea hot?"), llm("said", "web", "Yes.")])
    assert (exchange["question"], exchange["answer"], exchange["app"]) == ("Is tea hot?", "Yes.", "tea-room")
    assert metadata_of(exchange) == {"trace_id": TRACE, "span_id": "found", "session": "s-1"}


def test_chains_beside_each_other_that_have_only_together_an_answer_are_one() -> None:
    steps = [step("web"), chain("retrieve", "web", question="Tea?"), retriever("found", "retrieve", TEA)]
    exchange = only([*steps, chain("generate", "web", at=4), llm("said", "generate", "Hot.")])
    assert (exchange["question"], exchange["answer"], ids_of(exchange)) == ("Tea?", "Hot.", ["d-1"])


def test_where_steps_in_between_were_lost_the_rest_of_the_trace_is_looked_at() -> None:
    steps = [
        chain("root", question="Tea?", answer="Hot."),
        chain("context", "root", question="Tea?", answer="Tea is drunk hot."),
        llm("rewrite", "context", "How is tea drunk?", at=0),
        retriever("found", "context", TEA, at=3),
        chain("generate", "root", at=5),
        llm("said", "generate", "Hot.", at=6),
    ]
    assert only(steps)["answer"] == "Hot."
    assert only(without(steps, "root"))["answer"] == "Hot."
    assert only(without(steps, "root", "generate"))["answer"] == "Hot."
    assert reason_of(without(steps, "root", "generate", "said")) is SkipReason.NO_ANSWER


def _logged_over_and_over() -> list[Step]:
    """One exchange as frameworks log it: what was found is handed on from chain to chain; a query is written first."""
    return [
        chain("root", question="Tea?", answer="Hot.", documents=(TEA, MILK), ended_ns=100),
        chain("assign", "root", at=1, question="Tea?", ended_ns=40),
        chain("retrieve", "assign", at=2, question="Tea?", answer="Tea is drunk hot. Milk is drunk cold.", ended_ns=39),
        llm("rewrite", "retrieve", "how is tea drunk", at=3),
        retriever("found", "retrieve", TEA, MILK, at=10, question="how is tea drunk"),
        chain("generate", "root", at=50, question="Tea?", answer="Hot.", documents=(TEA, MILK), ended_ns=99),
        llm("said", "generate", "Hot.", at=60, model="m-1"),
    ]


@given(st.sets(st.sampled_from([one.id for one in _logged_over_and_over()]), max_size=5))
def test_whatever_was_lost_an_exchange_is_told_once_and_not_otherwise(lost: set[str]) -> None:
    whole = only(_logged_over_and_over())
    told = exchanges_of(without(_logged_over_and_over(), *lost))
    assert len(told) <= 1
    for exchange in told:
        assert (exchange["answer"], exchange["passages"]) == (whole["answer"], whole["passages"])
        assert exchange["question"] in {"Tea?", "how is tea drunk", ""}


def test_a_step_whose_parent_was_lost_belongs_to_the_chain_in_whose_time_it_began() -> None:
    steps = [
        step("web"),
        chain("one", "web", at=0, question="Tea?", answer="Hot."),
        retriever("found", "lost", TEA, at=3),
        chain("two", "web", at=20, question="Milk?", answer="Cold."),
        retriever("found too", "lost", MILK, at=23),
    ]
    assert [(one["answer"], ids_of(one)) for one in exchanges_of(steps)] == [("Hot.", ["d-1"]), ("Cold.", ["d-2"])]
    at_once = [one.model_copy(update={"begun_ns": 0, "ended_ns": 40}) for one in steps if one.kind is StepKind.CHAIN]
    assert reason_of([steps[0], *at_once, steps[2]]) is SkipReason.NO_ANSWER


# Question, answer, model.


def test_without_an_answer_of_its_own_a_root_has_what_a_model_said_last() -> None:
    steps = [chain("root"), retriever("found", "root", TEA, at=3), llm("query", "root", "tea", at=1)]
    assert only([*steps, llm("draft", "root", "Cold.", at=5), llm("said", "root", "Hot.", at=7)])["answer"] == "Hot."
    failed = llm("said", "root", "Nonsense", at=9, has_failed=True)
    assert only([*steps, llm("draft", "root", "Cold.", at=5), failed])["answer"] == "Cold."


def test_the_model_is_that_of_the_generation_that_is_the_answer() -> None:
    steps = [*rag(), llm("follow-up", "root", "And milk?", at=8, model="m-2")]
    assert only(steps)["generator_model"] == "m-1"
    assert only(without(steps, "said"))["generator_model"] == "m-2"


def test_the_question_is_the_uppermost_and_else_the_query() -> None:
    steps = [chain("root", answer="Hot."), chain("inner", "root", question="Is tea hot?")]
    assert only([*steps, retriever("found", "inner", TEA, question="tea")])["question"] == "Is tea hot?"
    assert only([*steps, retriever("found", "root", TEA, question="tea")])["question"] == "tea"
    assert only([*steps, retriever("found", "root", TEA)])["question"] == "Is tea hot?"


def test_thoughts_are_kept_apart() -> None:
    steps = [*rag()[:2], llm("said", "root", thoughts="Tea. Hmm.")]
    assert metadata_of(only(steps))["thoughts"] == "Tea. Hmm."


# Nothing to audit.


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], SkipReason.NOT_RAG),
        ([step("web")], SkipReason.NOT_RAG),
        ([chain("root", answer="Hot.", context="Tea is drunk hot."), llm("said", "root")], SkipReason.NOT_RAG),
        ([chain("root"), retriever("found", "root", TEA)], SkipReason.NO_ANSWER),
        ([chain("root", answer=" "), retriever("found", "root", TEA), llm("said", "root", None)], SkipReason.NO_ANSWER),
        ([chain("root", answer="Hot.", has_failed=True), *rag()[1:]], SkipReason.NO_ANSWER),
        (
            [chain("root", answer="Hot."), retriever("found", "root", Document(id="x"))],
            SkipReason.PASSAGES_WITHOUT_TEXT,
        ),
        (
            [chain("root", answer="Hot."), retriever("found", "root", documents=None)],
            SkipReason.PASSAGES_WITHOUT_TEXT,
        ),
    ],
)
def test_a_trace_without_an_exchange_has_a_reason(steps: list[Step], reason: SkipReason) -> None:
    assert reason_of(steps) is reason


# Documents that are only named.

NAMED = [
    chain("root", question="Is tea hot?", answer="Hot."),
    retriever("found", "root", Document(id="d-1", score=0.9)),
]


def test_documents_that_are_only_named_are_wanted_and_read_once_they_are_known() -> None:
    assert assemble(NAMED, TRACE).wanted == ("d-1",)
    known = assemble(NAMED, TRACE, {"d-1": "Tea is drunk hot."})
    assert known.exchanges[0]["passages"] == [{"id": "d-1", "text": "Tea is drunk hot.", "score": 0.9, "metadata": {}}]
    assert known.wanted == ()


def test_the_evidence_in_the_prompt_stands_for_documents_that_are_only_named() -> None:
    evidence = "Tea is drunk hot, and milk is drunk cold. Is tea hot? Yes."
    told = llm("said", "root", prompt=f"{evidence}\nQuestion: Is tea hot?")
    exchange = only([*NAMED, told])
    assert exchange["passages"] == [{"id": "ctx-1", "text": f"{evidence}\nQuestion:"}]
    assert (metadata_of(exchange)["evidence"], metadata_of(exchange)["retrieved_ids"]) == ("prompt", ["d-1"])
    assert assemble([*NAMED, told], TRACE).wanted == ()
    variable = only([*NAMED, told.model_copy(update={"context": "Tea is drunk hot."})])
    assert variable["passages"] == [{"id": "ctx-1", "text": "Tea is drunk hot."}]


def test_a_prompt_that_is_only_the_question_is_no_evidence() -> None:
    told = llm("said", "root", prompt="Question: Is tea hot?\nAnswer:")
    assert reason_of([*NAMED, told]) is SkipReason.PASSAGES_WITHOUT_TEXT


def test_a_prompt_is_never_evidence_beside_texts() -> None:
    told = llm("said", "root", prompt="Milk is drunk cold. " * 9, context="Milk is drunk cold.")
    steps = [chain("root", answer="Hot."), retriever("found", "root", TEA), told]
    assert ids_of(only(steps)) == ["d-1"]
    assert "evidence" not in metadata_of(only(steps))


def test_texts_that_are_missing_beside_others_are_counted_and_wanted() -> None:
    steps = [chain("root", answer="Hot."), retriever("found", "root", TEA, Document(id="d-1"), Document(id="d-9"))]
    exchange = only(steps)
    assert (ids_of(exchange), metadata_of(exchange)["passages_without_text"]) == (["d-1"], 1)
    assert assemble(steps, TRACE).wanted == ("d-9",)


# Hostile shapes.


@pytest.mark.parametrize("size", [bar(30_000, 10_000)])
def test_a_deep_a_wide_and_a_round_trace_end(size: int) -> None:
    deep = [chain(str(number), str(number - 1) if number else None, answer="Hot.") for number in range(size)]
    assert len(exchanges_of([*deep, retriever("found", str(size - 1), TEA)])) == 1
    comb = [step(str(number), str(number - 1) if number else None, at=number) for number in range(size // 3)]
    for number in range(size // 3):
        comb += [chain(f"c{number}", str(number), answer="Hot."), retriever(f"r{number}", f"c{number}", TEA)]
    assert len(exchanges_of(comb)) == size // 3
    circle = [chain(str(number), str((number + 1) % size), documents=(TEA,)) for number in range(size)]
    assembly = assemble(circle, TRACE)
    assert (assembly.reason, assembly.is_complete) == (SkipReason.NO_ANSWER, False)


def test_one_step_that_is_reported_with_ever_other_content_is_one_step() -> None:
    reports = [chain("root", answer=f"Answer {number}.") for number in range(2_000)]
    exchange = only([*reports, retriever("found", "root", TEA)])
    assert exchange == only([*reversed(reports), retriever("found", "root", TEA)])


def test_an_answer_of_a_trace_without_an_end_was_given_when_its_model_was_done_or_the_trace_began() -> None:
    root, found, said = rag()
    endless = root.model_copy(update={"ended_ns": None, "begun_ns": 3})
    assert only([endless, found, said])["occurred_at"] == 6
    assert only([endless, found])["occurred_at"] == 3
