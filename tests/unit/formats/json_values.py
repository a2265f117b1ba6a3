"""JSON in which the names of formats are frequent, so that readers get past the first look."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = """role type content parts blocks text message messages generations choices data kwargs id user tool_calls args
    tool_use thinking thought reasoning toolResult additional_kwargs constructor assistant input inputs output outputs
    question query answer answers replies documents page_content context metadata score node lc"""
NAMES = st.sampled_from(WORDS.split())
TEXTS = st.text(max_size=8) | st.sampled_from(['["x"]', '{"input": "x"}', '"x"', "[{}]", "{", '{"messages": [[]]}'])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=5),
    max_leaves=20,
)
