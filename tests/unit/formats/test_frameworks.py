from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.adapters.frameworks import FRAMEWORKS
from schemas.decoding import Decoded, Rejected, Skipped
from tests.bars import bar
from tests.unit.formats.exchanges import results_of
from tests.unit.formats.json_values import ANYTHING

names = st.sampled_from(
    [
        *("messages", "turns", "user_input", "retrieved_contexts", "response", "input", "output", "inputs", "outputs"),
        *("context", "source_documents", "source_nodes", "intermediate_steps", "answer", "result", "question", "vars"),
        *("actual_output", "retrieval_context", "source_file", "data", "query", "documents", "document", "answers"),
        *("replies", "meta", "init_parameters", "type", "role", "content", "id", "kwargs", "lc", "page_content"),
        *("artifact", "tool_calls", "status", "node", "text", "score", "sources", "raw_output", "values", "thread_id"),
    ]
)
words = st.sampled_from(["human", "ai", "tool", "assistant", "user", "constructor", "A.|B.", "[", "page_content='a'"])
leaves = words | st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3)
rows = st.recursive(
    st.dictionaries(names, leaves, max_size=6),
    lambda children: st.dictionaries(names, children | leaves | st.lists(children | leaves, max_size=4), max_size=6),
    max_leaves=12,
)


@given(rows | st.dictionaries(names, ANYTHING, max_size=5))
@settings(max_examples=bar(400, 100), deadline=None)
def test_whatever_a_framework_might_have_dumped_is_read_or_refused(row: object) -> None:
    results = results_of(row)  # type: ignore[arg-type]  # it is JSON
    assert results
    assert all(isinstance(one, Decoded | Rejected | Skipped) for one in results)


def test_the_formats_of_frameworks_have_names_of_their_own() -> None:
    assert len({adapter.name for adapter in FRAMEWORKS}) == len(FRAMEWORKS)
