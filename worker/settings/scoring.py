"""What scores and how: the part of the settings for the model, its detector, and attribution."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from gasp_core.packaged import PACKAGED_MODEL
from gasp_core.plan import MAX_CONTEXT_TOKENS
from worker.settings.detectors import DetectorChoice


class ScoringChoice(BaseModel):
    """The language model, what verdicts go by, and how much the model may use."""

    model: str = Field(
        PACKAGED_MODEL,
        description="The causal language model that scores: a name on the Hugging Face hub, a folder, or the packaged "
        "model",
    )
    model_revision: str | None = Field(
        None, description="A commit, branch or tag of the model on the hub. Without it: the newest"
    )
    device: str = Field("auto", description="Where the model runs: cpu, cuda, or auto, which is cuda if there is one")
    dtype: str = Field(
        "auto",
        description="The number format of the model: float32, bfloat16, float16, or auto, which is bfloat16 on CUDA "
        "and float32 on a CPU",
    )
    detector: DetectorChoice = Field(
        "auto",
        description="What verdicts go by: gap, jsd, fused, fused-free or readout. auto is the first of readout and "
        "fused that was learned from the model, else fused-free",
    )
    detector_file: Path | None = Field(
        None,
        description="A readout that `gasp train` or `gasp-worker fit-detector` learned from the model, to go by "
        "instead of what comes along",
    )
    max_context_tokens: int = Field(
        MAX_CONTEXT_TOKENS,
        ge=1,
        description="What a context has beyond this is cut off, and the row says so. Another value is another scorer "
        "identity, with thresholds of its own",
    )
    max_answer_tokens: int | None = Field(
        None, ge=1, description="The same for an answer. Without it: what the model's window holds"
    )
    max_batch_tokens: int | None = Field(
        None,
        ge=1,
        description="What one forward pass of the model takes at most; less needs less memory. Without it: 2,048 on a "
        "CPU, 16,384 on CUDA",
    )
    context_cache_bytes: int | None = Field(
        None,
        ge=0,
        description="Memory for contexts read lately, which later answers may share. Without it: 256 MiB on a CPU, a "
        "quarter of the free memory on CUDA",
    )
    threads: int = Field(
        1, ge=1, description="CPU threads of the model. Several workers use a CPU better than one with more threads"
    )


class AttributionChoice(BaseModel):
    """How the supporting passages of answers with a low score are found."""

    masked_attribution: bool = Field(
        default=False,
        description="Hide passages instead of taking them out: quicker, approximate, and a scorer of its own",
    )
    attribution_share: float = Field(
        0.1, ge=0.0, lt=1.0, description="The share of the model's time that attribution gets while new messages wait"
    )
    attribution_lease_s: float = Field(
        900.0, gt=0, description="A job whose worker gives no sign of life for so long is given to another one"
    )
    attribution_max_attempts: int = Field(
        5, ge=1, description="Attempts after which a job of attribution, re-scoring or a second opinion has failed"
    )
