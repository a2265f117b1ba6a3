"""Every setting with its default, what it takes and what it is for: for the terminal, and as docs/settings.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import fill

from pydantic import BaseModel, JsonValue

from worker.settings.channels import ReviewChannels
from worker.settings.documents import DocumentStoreChoice
from worker.settings.exports import ExportChoice
from worker.settings.intake import BatchLimits, BrokerConnection, DatabaseConnection, Intake
from worker.settings.page import PageChoice
from worker.settings.process import ProcessSettings
from worker.settings.reading import Reading
from worker.settings.schema_registry import SchemaRegistryChoice
from worker.settings.scoring import AttributionChoice, ScoringChoice
from worker.settings.second_opinion import SecondOpinionChoice
from worker.settings.security import KafkaSecurity
from worker.settings.settings import PREFIX, Settings
from worker.settings.traces import TraceChoice

GROUPS: dict[str, type[BaseModel]] = {
    "Database": DatabaseConnection,
    "Broker": BrokerConnection,
    "Topics and consumer group": Intake,
    "How messages are read": Reading,
    "Schemas of Avro and Protobuf": SchemaRegistryChoice,
    "Traces in many messages": TraceChoice,
    "Model and detector": ScoringChoice,
    "Attribution": AttributionChoice,
    "Document store": DocumentStoreChoice,
    "Review": ReviewChannels,
    "Review page": PageChoice,
    "Results sent back": ExportChoice,
    "Second opinions": SecondOpinionChoice,
    "Batches and time limits of Kafka": BatchLimits,
    "Process": ProcessSettings,
    "Security of Kafka": KafkaSecurity,
}

INTRODUCTION = """# Settings

<!-- Written by `make docs-settings` from the settings' own descriptions: change those, not this page. -->

All settings are environment variables. Only the database and the broker must be set; commands that look only into the
database need no broker. A worker reads the settings once, when it starts; a wrong one stops the start and is named.
Commands read the same variables. `gasp-worker settings`
prints this list, and `gasp-worker check` tries what is set.

A setting may stand in a file instead of a variable, as Docker and Kubernetes mount secrets (`GASP_SECRETS_DIR`). Two
more variables are read by the library itself: `GASP_CACHE_DIR` is the folder for converted models and for downloads,
and with `HF_HUB_OFFLINE=1` no model is fetched from the Hugging Face hub.
"""

REQUIRED, NONE, EMPTY = "required", "none", "empty"
WORDS = {REQUIRED, NONE, EMPTY}
_KINDS = {
    "integer": "whole number",
    "number": "number",
    "boolean": "1 or 0",
    "password": "secret",
    "path": "path",
    "date-time": "time",
}
# By the ending of a setting's name.
_UNITS = {"_s": "seconds", "_bytes": "bytes", "_tokens": "tokens"}
_TEXT_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """One setting, in words; ``takes`` has the unit and the range."""

    variable: str
    takes: str
    default: str
    description: str


def markdown() -> str:
    """The page: a table for each group."""
    return INTRODUCTION + "".join(_table(title, part) for title, part in GROUPS.items())


def text() -> str:
    """The same for a terminal: a line for each variable, and what it is for beneath."""
    return "\n\n".join(
        "\n".join([title, *(_lines(entry) for entry in entries(part))]) for title, part in GROUPS.items()
    )


def entries(part: type[BaseModel]) -> Iterator[Entry]:
    """The settings that a part of them defines, in the order of their definition."""
    properties = Settings.model_json_schema()["properties"]
    for name, field in part.model_fields.items():
        takes = _in_its_unit(name, _takes(properties[name]))
        default = REQUIRED if field.is_required() else _default(name, field.default)
        yield Entry(PREFIX + name.upper(), takes, default, field.description or "")


def _table(title: str, part: type[BaseModel]) -> str:
    rows = (
        f"| `{entry.variable}` | {entry.takes} | {_code(entry.default)} | {entry.description} |\n"
        for entry in entries(part)
    )
    return f"\n## {title}\n\n| variable | takes | default | is |\n|---|---|---|---|\n{''.join(rows)}"


def _code(default: str) -> str:
    value, blank, note = default.partition(" ")
    return default if default in WORDS else f"`{value}`{blank}{note}"


def _lines(entry: Entry) -> str:
    description = fill(entry.description, _TEXT_WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return f"  {entry.variable} = {entry.default}; takes {entry.takes}\n{description}"


def _default(name: str, value: object) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return str(int(value))
    if name.endswith("_bytes") and isinstance(value, int):
        return f"{value} ({value // 2**20} MiB)"
    return (f"{value:g}" if isinstance(value, float) else str(value)) or EMPTY


def _takes(schema: dict[str, JsonValue]) -> str:
    """The values in words, from the JSON Schema of one setting."""
    choices = schema.get("anyOf")
    if isinstance(choices, list):
        return " or ".join(_takes(one) for one in choices if isinstance(one, dict) and one.get("type") != "null")
    if isinstance(schema.get("enum"), list):
        return ", ".join(map(str, schema["enum"]))  # type: ignore[arg-type]  # a list, as was seen
    kind = _KINDS.get(str(schema.get("format", schema.get("type"))), "text")
    return " ".join([kind, *_bounds(schema)])


def _in_its_unit(name: str, takes: str) -> str:
    """What is a number, by the unit in which its name ends."""
    unit = next((word for ending, word in _UNITS.items() if name.endswith(ending)), "")
    return re.sub("(whole )?number", unit, takes) if unit else takes


def _bounds(schema: dict[str, JsonValue]) -> Iterator[str]:
    words = {"minimum": "from {}", "exclusiveMinimum": "above {}", "maximum": "to {}", "exclusiveMaximum": "below {}"}
    return (word.format(f"{float(str(schema[key])):.10g}") for key, word in words.items() if key in schema)
