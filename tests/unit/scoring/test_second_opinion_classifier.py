"""Second opinions of a classifier: which logit means support, windows, and models that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from gasp_core.entailment import load_entailment_model
from gasp_core.errors import ModelNotFound, ModelUnsupported
from tests.second_opinions import POSITIONS, WORDS, save_classifier
from worker.errors import SettingsError
from worker.rules.opinion import OpinionLabel
from worker.second_opinion.classifier import Classifier
from worker.second_opinion.start import load_classifier

NLI = ("contradiction", "ENTAILMENT", "neutral")
OPENS, DOGS = "the museum opens at nine", "dogs must stay outside"


@pytest.mark.parametrize(
    ("labels", "index"), [(NLI, 1), (("Supported", "unsupported"), 0), (("inconsistent", "consistent"), 1)]
)
def test_the_label_that_means_support_is_read_from_the_models_configuration(
    tmp_path: Path, labels: tuple[str, ...], index: int
) -> None:
    model = load_entailment_model(str(save_classifier(tmp_path, labels)), device="cpu")
    read = model.tokenizer(OPENS, "museum opens", return_tensors="pt")
    with torch.inference_mode():
        expected = model.network(**read).logits.softmax(-1)[0, index].item()
    assert model.probability([OPENS], "museum opens") == pytest.approx(expected, abs=1e-5)
    assert 0.01 < expected < 0.99


@pytest.mark.parametrize("label", ["LABEL_0", "entailment"])
def test_a_single_logit_rises_with_support(tmp_path: Path, label: str) -> None:
    model = load_entailment_model(str(save_classifier(tmp_path, (label,))), device="cpu")
    read = model.tokenizer(OPENS, "museum opens", return_tensors="pt")
    with torch.inference_mode():
        expected = model.network(**read).logits.sigmoid().item()
    assert model.probability([OPENS], "museum opens") == pytest.approx(expected, abs=1e-5)


def test_a_long_passage_is_read_in_windows_to_its_end_and_the_best_window_wins(tmp_path: Path) -> None:
    model = load_entailment_model(str(save_classifier(tmp_path, NLI)), device="cpu")
    assert model.window == POSITIONS - 2
    parts = [model.probability([text], DOGS) for text in (OPENS, DOGS)]
    # Two windows of one batch: kernels may round otherwise than for one window alone.
    together = model.probability([OPENS, DOGS], DOGS)
    assert together == pytest.approx(max(parts), abs=1e-6)
    assert together - min(parts) > 1e-4
    alone = {word: model.probability([f"{word} " * 20], DOGS) for word in WORDS}
    low, high = (f"{pick(alone, key=alone.__getitem__)} " for pick in (min, max))
    assert model.probability([low * 200 + high * 20], DOGS) > model.probability([low * 220], DOGS)
    assert model.probability([OPENS], "dogs \ud800 " * 50) > 0
    assert model.probability([], DOGS) == 0


def test_an_opinion_names_the_weights_that_gave_it(tmp_path: Path) -> None:
    one, other = (load_classifier(str(save_classifier(tmp_path / name, NLI)), "cpu") for name in ("one", "other"))
    assert one.verifier.startswith("one@")
    assert one.verifier.split("@")[1] == other.verifier.split("@")[1]
    _spoil(tmp_path / "other", rename="", fill=1.0)
    assert load_classifier(str(tmp_path / "other"), "cpu").verifier != other.verifier
    opinion = one.judge("when?", [OPENS, DOGS], "it opens at nine", "it opens at nine")
    assert isinstance(one, Classifier)
    assert opinion.p_unsupported is not None
    assert (opinion.label is OpinionLabel.UNSUPPORTED) == (opinion.p_unsupported > 0.5)
    assert opinion.verifier == one.verifier


@pytest.mark.parametrize(
    "labels", [("LABEL_0", "LABEL_1"), ("good", "bad"), ("entailment", "supported"), ("not_entailment", "neutral")]
)
def test_labels_that_do_not_tell_which_means_support_are_refused(tmp_path: Path, labels: tuple[str, ...]) -> None:
    folder = str(save_classifier(tmp_path, labels))
    with pytest.raises(ModelUnsupported, match="id2label"):
        load_entailment_model(folder, device="cpu")
    with pytest.raises(SettingsError, match="GASP_SECOND_OPINION_MODEL"):
        load_classifier(folder, "cpu")


def test_a_model_without_the_weights_of_a_classifier_is_refused_rather_than_filled_at_random(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path, NLI)
    _spoil(folder, rename="lost.")
    with pytest.raises(ModelUnsupported, match="lacks weights"):
        load_entailment_model(str(folder), device="cpu")


def test_only_safetensors_are_loaded_and_no_code_of_the_models(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path, NLI)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelUnsupported, match=r"no \.safetensors"):
        load_entailment_model(str(folder), device="cpu")
    with pytest.raises(ModelNotFound):
        load_entailment_model(str(tmp_path / "nowhere"), device="cpu")
    config = json.loads((folder / "config.json").read_text()) | {
        "model_type": "own",
        "auto_map": {"AutoConfig": "own.Own", "AutoModelForSequenceClassification": "own.Own"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with pytest.raises(ModelUnsupported):
        load_entailment_model(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


def _spoil(folder: Path, *, rename: str, fill: float | None = None) -> None:
    """Put ``rename`` before the names of the classifier's weights, or fill them with a number."""
    weights = load_file(folder / "model.safetensors")
    spoilt = {
        rename + name if name.startswith("classifier") else name: (
            torch.full_like(tensor, fill) if fill is not None and name.startswith("classifier") else tensor
        )
        for name, tensor in weights.items()
    }
    save_file(spoilt, folder / "model.safetensors", metadata={"format": "pt"})
