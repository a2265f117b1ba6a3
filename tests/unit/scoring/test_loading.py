"""What is loaded is what was meant: checkpoints that are not whole, or not what they seem, are refused by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, LlamaConfig, LlamaForSequenceClassification

from gasp_core.errors import ModelError, ModelUnsupported
from gasp_core.model import load_model
from gasp_core.packaged import PACKAGED_MODEL, resolve_model
from tests.models import save_model

WEIGHTS = "model.safetensors"
Tensors = dict[str, torch.Tensor]


def rewrite(folder: Path, change: Callable[[Tensors], Tensors]) -> None:
    """Save the weights anew after a change."""
    save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, metadata={"format": "pt"})


def configure(folder: Path, **settings: object) -> None:
    """Change config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings), encoding="utf-8")


def refused(folder: Path, *said: str, **options: str) -> None:
    """The folder is refused in one line that has each of these."""
    with pytest.raises(ModelError) as raised:
        load_model(str(folder), **{"device": "cpu", **options})
    message = str(raised.value)
    assert "\n" not in message
    assert all(re.search(one, message) for one in said), message


# Weights that are missing, or of something else


@pytest.mark.parametrize(
    "lost", ["model.layers.1.", "model.layers.0.mlp.up_proj.weight", "lm_head.weight", "model.norm.weight"]
)
def test_weights_that_are_missing_are_named_instead_of_made_up(tiny_folder: Path, lost: str) -> None:
    rewrite(tiny_folder, lambda tensors: {name: one for name, one in tensors.items() if not name.startswith(lost)})
    refused(tiny_folder, "lacks weights of a causal language model", re.escape(lost))


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "student."])
def test_weights_under_a_prefix_are_not_taken_for_others(tiny_folder: Path, prefix: str) -> None:
    rewrite(tiny_folder, lambda tensors: {prefix + name: one for name, one in tensors.items()})
    refused(tiny_folder, "lacks weights", re.escape(prefix))


def test_a_head_that_is_tied_to_the_embedding_is_not_missing(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "tied", "gemma")
    assert "lm_head.weight" not in load_file(folder / WEIGHTS)
    load_model(str(folder), device="cpu")


@pytest.mark.parametrize("tied", [True, False])
def test_a_reward_model_is_refused(tiny_folder: Path, *, tied: bool) -> None:
    config: Any = LlamaConfig.from_pretrained(str(tiny_folder), num_labels=1, tie_word_embeddings=tied)
    make: Any = LlamaForSequenceClassification
    reward = make(config)
    reward.save_pretrained(str(tiny_folder))
    refused(tiny_folder, r"score\.weight")


def test_layers_beyond_those_of_the_settings_are_not_left_out_in_silence(tiny_folder: Path) -> None:
    configure(tiny_folder, num_hidden_layers=1)
    refused(tiny_folder, "has no place for", r"model\.layers\.1\.")


def test_an_adapter_that_was_not_merged_is_not_left_out_in_silence(tiny_folder: Path) -> None:
    adapter = {"model.layers.0.self_attn.q_proj.lora_A.weight": torch.zeros(2, 32)}
    rewrite(tiny_folder, lambda tensors: tensors | adapter)
    refused(tiny_folder, r"q_proj\.lora_A")


def test_what_a_model_sees_and_hears_with_may_lie_beside_what_it_reads_with(tiny_folder: Path) -> None:
    rewrite(tiny_folder, lambda tensors: tensors | {"vision_tower.layers.0.weight": torch.zeros(2, 2)})
    load_model(str(tiny_folder), device="cpu")


def test_weights_of_another_shape_are_named(tiny_folder: Path) -> None:
    configure(tiny_folder, intermediate_size=48)
    refused(tiny_folder, "other shapes", r"model\.layers\.0\.mlp\.down_proj\.weight", "and 3 more")


# Numbers that are none


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_weight_that_is_no_number_is_named(tiny_folder: Path, value: float) -> None:
    name = "model.layers.1.self_attn.o_proj.weight"

    def spoil(tensors: Tensors) -> Tensors:
        tensors[name][3, 5] = value
        return tensors

    rewrite(tiny_folder, spoil)
    refused(tiny_folder, re.escape(name), "not finite")


def test_weights_that_are_too_large_for_the_dtype_are_named_with_it(tiny_folder: Path) -> None:
    rewrite(tiny_folder, lambda tensors: tensors | {"model.norm.weight": torch.full((32,), 1e6)})
    load_model(str(tiny_folder), device="cpu", dtype="float32")
    refused(tiny_folder, r"model\.norm\.weight", "not finite in float16", "another dtype", dtype="float16")


def test_a_model_that_computes_infinities_in_a_dtype_is_refused(tiny_folder: Path) -> None:
    large = {name: torch.full((32,), 6e4) for name in ("model.norm.weight", "model.layers.0.input_layernorm.weight")}
    rewrite(tiny_folder, lambda tensors: tensors | large)
    load_model(str(tiny_folder), device="cpu", dtype="bfloat16")
    refused(tiny_folder, "infinities or no numbers in float16", "another dtype", dtype="float16")


def test_an_embedding_that_lacks_rows_for_the_tokenizer_is_refused(tiny_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(str(tiny_folder))
    rows = len(tokenizer)
    # A control token beyond the weights is in no text.
    tokenizer.add_special_tokens({"pad_token": "[PAD]"})
    tokenizer.save_pretrained(str(tiny_folder))
    load_model(str(tiny_folder), device="cpu")
    tokenizer.add_tokens(["Belmora"])
    tokenizer.save_pretrained(str(tiny_folder))
    refused(tiny_folder, f"ids up to {rows + 1}", f"only {rows} rows")


# Files that are not what their names say


def pointer(path: Path) -> None:
    """What is in the place of a file when Git LFS was not asked for it."""
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4665\nsize 541\n", encoding="utf-8")


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json", "config.json"])
def test_a_pointer_of_git_lfs_is_named(tiny_folder: Path, name: str) -> None:
    pointer(tiny_folder / name)
    refused(tiny_folder, re.escape(name), "git lfs pull")


@pytest.mark.parametrize("name", [WEIGHTS, "tokenizer.json", "config.json"])
@pytest.mark.parametrize("part", [0, 0.001, 0.5, 0.99])
def test_half_a_download_is_named(tiny_folder: Path, name: str, part: float) -> None:
    path = tiny_folder / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    refused(tiny_folder, re.escape(name), "cut off", "take the whole model again")


def test_a_shard_that_is_missing_is_named(tiny_folder: Path) -> None:
    tensors = load_file(tiny_folder / WEIGHTS)
    index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "model-00002-of-00002.safetensors")}
    (tiny_folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index), encoding="utf-8")
    (tiny_folder / WEIGHTS).rename(tiny_folder / "model-00001-of-00002.safetensors")
    refused(tiny_folder, "lacks model-00002-of-00002.safetensors")


@pytest.mark.parametrize(
    "settings",
    [
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {"quant_method": "bitsandbytes", "load_in_4bit": True},
        {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {}},
    ],
)
def test_quantized_weights_are_refused_with_how(tiny_folder: Path, settings: dict[str, object]) -> None:
    configure(tiny_folder, quantization_config=settings)
    refused(tiny_folder, f"quantized by {settings['quant_method']}", "choose")


def test_a_tokenizer_of_a_later_version_is_refused_with_what_to_update(tiny_folder: Path) -> None:
    path = tiny_folder / "tokenizer.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    written["model"]["type"] = "OfTomorrow"
    path.write_text(json.dumps(written), encoding="utf-8")
    refused(tiny_folder, "update transformers and tokenizers")


@pytest.mark.parametrize(
    "settings",
    [{"model_type": "of-tomorrow"}, {"hidden_act": "no-such"}, {"num_attention_heads": 5}, {"hidden_size": "32"}],
)
def test_settings_that_no_model_can_be_made_of_are_refused_in_one_line(
    tiny_folder: Path, settings: dict[str, object]
) -> None:
    configure(tiny_folder, **settings)
    refused(tiny_folder, "choose another|take the whole model again|was trained as such")


@pytest.mark.parametrize("error", [AttributeError, KeyError, RuntimeError, AssertionError, TypeError, Exception])
def test_whatever_a_family_raises_is_said_in_one_line(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("'Config' object has no attribute\n 'pad'")

    monkeypatch.setattr("transformers.models.llama.modeling_llama.LlamaForCausalLM.forward", fail)
    refused(tiny_folder, f"\\({error.__name__}: .*has no attribute.* 'pad'")


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").write_text("a file in the place of a folder", encoding="utf-8")
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path))
    with pytest.raises(ModelError, match=r"cannot be written to .*models \(.*\); set GASP_CACHE_DIR"):
        resolve_model(PACKAGED_MODEL)


def test_files_beside_the_model_are_nobodys_concern(tiny_folder: Path) -> None:
    pointer(tiny_folder / "consolidated.safetensors")
    load_model(str(tiny_folder), device="cpu")
    with pytest.raises(ModelUnsupported, match="use auto, cpu or cuda"):
        load_model(str(tiny_folder), device="gpu")
