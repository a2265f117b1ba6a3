"""Adapters from what review tools write to the native form of a label.

A new tool is one more file here and one more entry in ``LABEL_ADAPTERS``, before the general one.
"""

from __future__ import annotations

from schemas.adapters.fields import wrong_shape
from schemas.envelope import JsonObject
from schemas.label_adapters.adapter import LabelAdapter
from schemas.label_adapters.label_studio import LabelStudioAdapter
from schemas.label_adapters.native import NativeLabelAdapter
from schemas.label_adapters.rows import RowLabelAdapter

LABEL_ADAPTERS: tuple[LabelAdapter, ...] = (NativeLabelAdapter(), LabelStudioAdapter(), RowLabelAdapter())


def label_adapter_for(row: JsonObject) -> LabelAdapter:
    """Return the first adapter that knows the row's form. Raises UnusablePayload (wrong_shape) if none does."""
    for adapter in LABEL_ADAPTERS:
        if adapter.matches(row):
            return adapter
    raise wrong_shape("label", "missing, and no known form of a label")
