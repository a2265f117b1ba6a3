"""When the steps of a trace are taken for all of it: the part of the settings for traces in many messages."""

from __future__ import annotations

from pydantic import BaseModel, Field


class TraceChoice(BaseModel):
    """How long the steps of a trace wait for each other, and how many traces may wait."""

    trace_grace_s: float = Field(
        10.0,
        ge=0,
        le=3600,
        description="A trace whose uppermost step is over, and of which nothing is missing, is scored so long after "
        "its last message",
    )
    trace_timeout_s: float = Field(
        600.0,
        gt=0,
        le=7 * 86_400,
        description="A trace of which something is missing is scored as it is so long after its last message, and says "
        "so",
    )
    trace_keep_days: int = Field(
        8,
        ge=0,
        le=3650,
        description="For so many days after a trace was scored its steps are kept, so that one that comes late makes a "
        "new revision of the exchange. After that it is only counted",
    )
    trace_open_per_app: int = Field(
        10_000,
        ge=1,
        description="If more traces of an app wait for steps than this, those for which nothing came for longest are "
        "scored as they are, and say so",
    )
