"""Adapters from logging formats to the native form.

A new format is one more file here and one more entry in ``ADAPTERS``, before the general ones.
"""

from __future__ import annotations

from schemas.adapters.adapter import Adapter
from schemas.adapters.fields import wrong_shape
from schemas.adapters.flat import FLAT_NAMES, FlatAdapter
from schemas.adapters.langsmith import LangSmithAdapter
from schemas.adapters.native import NativeAdapter
from schemas.adapters.otlp import OtlpAdapter
from schemas.envelope import JsonObject
from schemas.headers import Headers

ADAPTERS: tuple[Adapter, ...] = (NativeAdapter(), OtlpAdapter(), LangSmithAdapter(), FlatAdapter())


def adapter_for(row: JsonObject, headers: Headers) -> Adapter:
    """Return the first adapter that knows the row's format. Raises UnusablePayload (wrong_shape) if none does."""
    for adapter in ADAPTERS:
        if adapter.matches(row, headers):
            return adapter
    raise wrong_shape(FLAT_NAMES.answer[0], "missing, and no other known format")
