"""Adapters from logging formats to the native form.

A new format is one more file here and one more entry in ``ADAPTERS``, before the general ones.
"""

from __future__ import annotations

from schemas.adapters.adapter import Adapter
from schemas.adapters.fields import NO_PASSAGES
from schemas.adapters.flat import FLAT_NAMES, FlatAdapter, spelled
from schemas.adapters.frameworks import FRAMEWORKS
from schemas.adapters.langchain_events import LangChainEventsAdapter
from schemas.adapters.langfuse import LangfuseAdapter
from schemas.adapters.langsmith import LangSmithAdapter
from schemas.adapters.mlflow import MlflowAdapter
from schemas.adapters.native import NativeAdapter
from schemas.adapters.opik import OpikAdapter
from schemas.adapters.otlp import OtlpAdapter
from schemas.adapters.refusal import FLAT_ROW, refused
from schemas.adapters.span_rows import OtelSpanAdapter, PhoenixAdapter
from schemas.adapters.trulens import TruLensAdapter
from schemas.adapters.vendors import VENDORS
from schemas.headers import Headers
from schemas.payload import JsonObject

ADAPTERS: tuple[Adapter, ...] = (
    NativeAdapter(),
    # Its spans in a row look like OTLP's.
    MlflowAdapter(),
    OtlpAdapter(),
    LangSmithAdapter(),
    LangChainEventsAdapter(),
    LangfuseAdapter(),
    OpikAdapter(),
    PhoenixAdapter(),
    OtelSpanAdapter(),
    TruLensAdapter(),
    *VENDORS,
    *FRAMEWORKS,
    FlatAdapter(),
)


def adapter_for(row: JsonObject, headers: Headers) -> Adapter:
    """Return the first adapter that knows the row's format. Raises UnusablePayload (wrong_shape) if none does.

    The rejection says which format the row looks like, what it lacks, and which of the usual names it has.
    """
    for adapter in ADAPTERS:
        if adapter.matches(row, headers):
            return adapter
    known = spelled(row)
    if any(name in known for name in FLAT_NAMES.answer):
        raise refused(known, FLAT_NAMES.passages[0], NO_PASSAGES, FLAT_NAMES.all, FLAT_ROW)
    raise refused(known, FLAT_NAMES.answer[0], "missing, and no other known format", FLAT_NAMES.all, None)
