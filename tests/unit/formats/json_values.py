"""JSON in which the names of formats are frequent, so that readers get past the first look."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = """role type content parts blocks text message messages generations choices data kwargs id user tool_calls args
    tool_use thinking thought reasoning toolResult additional_kwargs constructor assistant input inputs output outputs
    question query answer answers replies documents page_content context metadata score node lc"""
ATTRIBUTE_WORDS = """gen_ai.operation.name gen_ai.input.messages gen_ai.output.messages gen_ai.prompt gen_ai.tool.type
    gen_ai.prompt.0.content gen_ai.completion.0.content gen_ai.completion.0.tool_calls.0.name
    gen_ai.retrieval.documents gen_ai.retrieval.query.text gen_ai.tool.call.result gen_ai.request.choice.count
    gen_ai.prompt.variable.context gen_ai.event.content gen_ai.response.model llm.request.type traceloop.span.kind
    traceloop.entity.input traceloop.entity.output traceloop.association.properties.user_id
    langfuse.observation.type langfuse.trace.input langfuse.observation.input langfuse.observation.output
    langfuse.internal.is_app_root langfuse.trace.tags langfuse.environment ai.observability.span_type
    ai.observability.retrieval.retrieved_contexts ai.observability.reranking.output_context_texts
    ai.observability.reranking.output_context_scores ai.observability.record_root.input
    ai.observability.record_root.output mlflow.spanType mlflow.spanInputs mlflow.spanOutputs mlflow.llm.model
    ai.operationId ai.prompt ai.prompt.messages ai.response.text ai.toolCall.result ai.response.toolCalls
    langsmith.span.kind langsmith.span.tags langsmith.metadata.user_id gen_ai.completion
    db.vector.query.result_count db.query.result.document db.query.result.metadata openinference.span.kind user.id
    session.id"""
KIND_WORDS = """chat retrieval invoke_agent execute_tool datastore rerank workflow task retriever generation span
    record_root reranking "RETRIEVER" "LLM" ai.generateText ai.toolCall ai.generateText.doGenerate RETRIEVER LLM"""
EVENT_WORDS = """gen_ai.user.message gen_ai.choice gen_ai.client.inference.operation.details
    gen_ai.retrieval.documents gen_ai.content.prompt db.query.result db.search.result exception"""
NAMES = st.sampled_from(WORDS.split())
TEXTS = st.text(max_size=8) | st.sampled_from(['["x"]', '{"input": "x"}', '"x"', "[{}]", "{", '{"messages": [[]]}'])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=5),
    max_leaves=20,
)
