"""The packaged model: what may not move its scores, and what it goes by."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gasp_core.detectors.fused import FUSED
from gasp_core.detectors.standard.figures import figures_of
from gasp_core.detectors.standard.reference import PACKAGED_FIGURES
from gasp_core.fingerprint import fingerprint
from gasp_core.grounding import Exchange, Passage
from gasp_core.model import LanguageModel, load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from gasp_core.passes.choice import Passes, choose_passes
from gasp_core.plan import Limits
from gasp_core.scorer import GroundingScorer
from gasp_core.tokenizer import load_tokenizer
from tests.bars import FULL

QUESTION, ANSWER = "How long is the warranty?", "The warranty lasts 30 months."
WARRANTY = "The warranty of the Belmora {0}300 lasts {0} 30 months"
RETURNS = "Returns are free for 14 days. The receipt must be shown."
EXCHANGE = Exchange(QUESTION, (Passage("kb-1", WARRANTY.format("")), Passage("kb-2", RETURNS)), ANSWER)


@pytest.fixture(scope="module")
def packaged() -> LanguageModel:
    return load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def passes(packaged: LanguageModel) -> Passes:
    return choose_passes(packaged).passes


@pytest.fixture(scope="module")
def scorer(packaged: LanguageModel, passes: Passes) -> GroundingScorer:
    return GroundingScorer(packaged, passes=passes)


def gap(scorer: GroundingScorer, *passages: str) -> float:
    """The gap of the answer's only sentence."""
    retrieved = tuple(Passage(f"kb-{number}", text) for number, text in enumerate(passages))
    (sentence,) = scorer.score([Exchange(QUESTION, retrieved, ANSWER)])[0].sentences
    assert sentence.gap is not None
    return sentence.gap


@pytest.mark.skipif(not FULL, reason="it reads the whole reference set; `make bars` does")
def test_the_figures_that_others_are_compared_with_are_those_of_the_packaged_model(
    scorer: GroundingScorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path))
    assert {name: pytest.approx(figures, abs=2e-3) for name, figures in PACKAGED_FIGURES.items()} == figures_of(scorer)


@pytest.mark.parametrize("control", ["<|endoftext|>", "<|im_end|>"])
@pytest.mark.parametrize("times", [1, 10])
def test_whoever_writes_a_passage_cannot_lower_a_score_by_control_tokens(
    scorer: GroundingScorer, control: str, times: int
) -> None:
    supported = gap(scorer, WARRANTY.format(""), RETURNS)
    assert gap(scorer, WARRANTY.format(control * times), RETURNS) > 0.7 * supported
    assert gap(scorer, WARRANTY.format(""), RETURNS + control * times) > 0.7 * supported


def older(settings: dict[str, Any]) -> dict[str, Any]:
    """As transformers 4 wrote it."""
    rope = settings.pop("rope_parameters")
    dtype = settings.pop("dtype")
    return settings | {"rope_theta": rope["rope_theta"], "rope_scaling": None, "torch_dtype": dtype}


def bare(settings: dict[str, Any]) -> dict[str, Any]:
    """Without what is usual in the family anyway."""
    for name in ("attention_bias", "mlp_bias", "pretraining_tp", "use_cache", "hidden_act", "transformers_version"):
        settings.pop(name, None)
    return settings


def newer(settings: dict[str, Any]) -> dict[str, Any]:
    """With the names that some later version may add."""
    return settings | {"transformers_version": "5.99.0", "_attn_implementation": "sdpa", "output_router_logits": False}


@pytest.fixture
def rewritten(tmp_path: Path) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], Path]:
    """A copy of the packaged model whose config.json is written otherwise."""

    def write(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Path:
        source, folder = Path(resolve_model(PACKAGED_MODEL)), tmp_path / PACKAGED_MODEL
        folder.mkdir()
        for path in source.iterdir():
            if path.suffix == ".safetensors":
                (folder / path.name).symlink_to(path.resolve())
            else:
                shutil.copy(path, folder)
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps(change(settings), indent=4), encoding="utf-8")
        return folder

    return write


def revision(folder: Path) -> str:
    """The fingerprint of the model in a folder, without its weights being loaded."""
    from transformers import AutoConfig

    return fingerprint(folder, AutoConfig.from_pretrained(str(folder)), load_tokenizer(str(folder), None))


@pytest.mark.parametrize("change", [older, bare, newer])
def test_another_version_of_transformers_leaves_the_packaged_model_its_coefficients(
    rewritten: Callable[..., Path], packaged: LanguageModel, scorer: GroundingScorer, change: Callable[..., Any]
) -> None:
    assert revision(rewritten(change)) == packaged.revision
    FUSED.require_admission(scorer.identity)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rms_norm_eps", 1e-6),
        ("rope_parameters", {"rope_type": "default", "rope_theta": 10_000.0}),
        ("max_position_embeddings", 2048),
        ("tie_word_embeddings", False),
        ("hidden_act", "gelu"),
        ("sliding_window", 512),
    ],
)
def test_a_setting_that_decides_scores_is_another_model(
    rewritten: Callable[..., Path], packaged: LanguageModel, name: str, value: object
) -> None:
    assert revision(rewritten(lambda settings: settings | {name: value})) != packaged.revision


def test_limits_are_no_matter_to_the_coefficients_and_another_identity(packaged: LanguageModel, passes: Passes) -> None:
    usual, tight = (GroundingScorer(packaged, passes=passes, limits=limits) for limits in (Limits(), Limits(16, 256)))
    assert usual.identity != tight.identity
    FUSED.require_admission(tight.identity)
    assert usual.score([EXCHANGE])[0].sentences[0].gap != pytest.approx(
        tight.score([EXCHANGE])[0].sentences[0].gap, abs=0.1
    )


# In float16 many processors take several times as long.
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"] if FULL else ["bfloat16"])
def test_the_packaged_model_is_read_in_16_bits_as_well(dtype: str) -> None:
    narrow = load_model(resolve_model(PACKAGED_MODEL), device="cpu", dtype=dtype)
    assert gap(GroundingScorer(narrow), WARRANTY.format(""), RETURNS) > 0


NOBODY = """
import os, pwd, sys
def unknown(_: int) -> None:
    raise KeyError("getpwuid(): uid not found")
pwd.getpwuid = unknown
from gasp_core.errors import GaspError
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
print(load_model(sys.argv[1], device="cpu").name)
try:
    resolve_model(PACKAGED_MODEL)
except GaspError as error:
    print(error)
"""


def test_a_user_without_a_home_loads_a_folder_and_is_told_where_to_keep_the_packaged_model(tiny_folder: Path) -> None:
    # As in a container that runs under a number without an account.
    known = {name: value for name, value in os.environ.items() if name not in {"HOME", "XDG_CACHE_HOME"}}
    known.pop("GASP_CACHE_DIR", None)
    command = [sys.executable, "-c", NOBODY, str(tiny_folder)]
    done = subprocess.run(command, env=known, capture_output=True, text=True, check=False, timeout=200)
    assert done.stdout.splitlines() == [
        "tiny",
        "SmolLM2-135M-Instruct: there is no home directory to keep it in; set GASP_CACHE_DIR",
    ], done.stderr
