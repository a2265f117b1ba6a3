"""Rows that hold what went in and what came out, as evaluation tools log them, whatever the format of these is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.adapters.adapter import Adapter, Finding
from schemas.adapters.fields import wrong_shape
from schemas.adapters.said import read_answer, read_question
from schemas.headers import Headers
from schemas.payload import JsonObject
from schemas.values import as_parsed

# MLflow and LangSmith, promptfoo; a framework's result beside the question that it was asked.
_INPUTS = ("inputs", "input", "vars", "request")
_OUTPUTS = ("outputs", "output", "response", "result", "values")


@dataclass(frozen=True, slots=True)
class InputsOutputsAdapter:
    """Reads rows whose inputs or outputs are objects, by the format that their fields make together."""

    formats: Sequence[Adapter]
    name: str = "inputs_outputs"

    def matches(self, row: JsonObject, headers: Headers) -> bool:
        """Whether the fields of inputs and outputs, beside those of the row, are of a known format."""
        laid = _laid_open(row)
        return laid is not None and self._format(laid, headers) is not None

    def read(self, row: JsonObject) -> Iterable[Finding]:
        """Give what the format gives. Raises UnusablePayload (wrong_shape)."""
        laid = _laid_open(row)
        found = None if laid is None else self._format(laid, ())
        if laid is None or found is None:
            raise wrong_shape("outputs", "of no known format")
        return found.read(laid)

    def _format(self, row: JsonObject, headers: Headers) -> Adapter | None:
        return next((one for one in self.formats if one.matches(row, headers)), None)


def _laid_open(row: JsonObject) -> JsonObject | None:
    """The row with the fields of its inputs and outputs in their place; None if they are texts and messages alone."""
    opened: list[JsonObject] = []
    rest = dict(row)
    for names, read in ((_INPUTS, read_question), (_OUTPUTS, read_answer)):
        for name in names:
            inner = as_parsed(row.get(name))
            if isinstance(inner, dict) and ("messages" in inner or read(inner) is None):
                opened.append(inner)
                del rest[name]
    if not opened:
        return None
    for name, other in (("inputs", "input"), ("outputs", "output")):
        # A text beside an object.
        if isinstance(rest.get(name), str) and other not in rest:
            rest[other] = rest.pop(name)
    inside = {name: value for inner in opened for name, value in inner.items()}
    return {**inside, **{name: value for name, value in rest.items() if value is not None or name not in inside}}
