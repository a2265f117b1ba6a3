"""Which models are loaded, and what is said about the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers.utils import logging

from gasp_core.errors import ModelNotFound, ModelUnsupported
from gasp_core.model import LanguageModel, load_model
from tests.models import WINDOW_TOKENS, save_model


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2", "gemma2"])
@torch.inference_mode()
def test_logits_of_padded_rows_are_the_models_own(family: str, tiny_model_of: Callable[[str], LanguageModel]) -> None:
    model = tiny_model_of(family)
    ids = torch.tensor([[5, 6, 7, 8, 9, 10], [11, 12, 13, 0, 0, 0]])
    alone = model.network(input_ids=ids[1:, :3]).logits[0]
    torch.testing.assert_close(model.logits(model.hidden(ids)[1, :3]), alone, atol=1e-5, rtol=1e-5)


def test_a_loaded_model_says_what_it_is(tiny_model: LanguageModel) -> None:
    assert (tiny_model.name, tiny_model.dtype, tiny_model.window) == ("tiny-llama", "float32", WINDOW_TOKENS)


def test_loading_leaves_gradients_and_progress_bars_as_they_were(tiny_folder: Path) -> None:
    bars = logging.is_progress_bar_enabled()
    load_model(str(tiny_folder), device="cpu")
    assert torch.is_grad_enabled()
    assert logging.is_progress_bar_enabled() == bars


def test_the_revision_follows_the_weights(tmp_path: Path) -> None:
    first = save_model(tmp_path / "one")
    second = save_model(tmp_path / "two")
    assert load_model(str(first)).revision == load_model(str(second)).revision
    weights = bytearray((second / "model.safetensors").read_bytes())
    weights[-8:] = b"\x00" * 8
    (second / "model.safetensors").write_bytes(weights)
    assert load_model(str(first)).revision != load_model(str(second)).revision


def test_the_beginning_is_what_the_tokenizer_puts_before_a_text(tmp_path: Path) -> None:
    assert load_model(str(save_model(tmp_path / "with", bos=True))).beginning() == [0]
    assert load_model(str(save_model(tmp_path / "without"))).beginning() == []


def test_an_unknown_name_says_where_was_looked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelNotFound, match="no such folder, and no such model"):
        load_model("nobody/no-such-model")


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"no config\.json"):
        load_model(str(tmp_path))


def test_weights_in_another_format_are_refused(tiny_folder: Path) -> None:
    (tiny_folder / "model.safetensors").rename(tiny_folder / "pytorch_model.bin")
    with pytest.raises(ModelUnsupported, match=r"no \.safetensors"):
        load_model(str(tiny_folder))


def test_a_wrong_device_and_a_wrong_dtype_are_named(tiny_folder: Path) -> None:
    with pytest.raises(ModelUnsupported, match="use auto, cpu or cuda"):
        load_model(str(tiny_folder), device="gpu")
    with pytest.raises(ModelUnsupported, match="use auto or one of float32"):
        load_model(str(tiny_folder), dtype="int8")


def test_a_head_that_we_do_not_know_is_refused(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gasp_core.model._transform", lambda logits, _: logits * 2)
    with pytest.raises(ModelUnsupported, match="not a known function"):
        load_model(str(tiny_folder))


def test_a_model_that_reads_in_both_directions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match="both directions, and is not a causal language model"):
        load_model(str(save_model(tmp_path / "both", "bert")), device="cpu")
