"""Other people's models: each is asked as its makers say, on tiny random ones of the same classes."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.nn.modules.module import register_module_forward_hook
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    T5Config,
    T5ForTokenClassification,
)
from typer.testing import CliRunner, Result

from gasp_core.cli import app
from gasp_core.entailment import load_entailment_model
from gasp_core.errors import ModelNotFound, ModelUnsupported
from gasp_core.grounding import Exchange, Passage
from gasp_core.peers.load import load_peer
from gasp_core.peers.peer import Peer
from gasp_core.text.sentences import split_answer
from tests.labelled_answers import labelled_rows, write_rows
from tests.models import save_model
from tests.peers import save_hhem, save_minicheck_text, save_sequence, save_tagger

PASSAGES = ("The museum opens at nine. It closes at six.", "Tickets cost twelve euros.", "Dogs must stay outside.")
EXCHANGE = Exchange(
    "When does the museum open?",
    tuple(Passage(str(number), text) for number, text in enumerate(PASSAGES)),
    "The museum opens at nine. Children pay nothing on Mondays.",
)
PROMPT = """Briefly answer the following question:
When does the museum open?
Bear in mind that your response should be strictly based on the following 3 passages:
passage 1: The museum opens at nine. It closes at six.
passage 2: Tickets cost twelve euros.
passage 3: Dogs must stay outside.
In case the passages do not contain the necessary information to answer the question, please reply with: \
"Unable to answer based on given passages."
output:"""
SUMMARY = """Summarize the following text:
passage 1: The museum opens at nine. It closes at six.
passage 2: Tickets cost twelve euros.
passage 3: Dogs must stay outside.
output:"""
GERMAN = """Beantworte die folgende Frage kurz:
When does the museum open?
Beachte, dass deine Antwort nur auf den folgenden 3 Passagen basieren soll:
Passage 1: The museum opens at nine. It closes at six.
Passage 2: Tickets cost twelve euros.
Passage 3: Dogs must stay outside.
Falls die Passagen nicht die notwendigen Informationen zur Beantwortung der Frage enthalten, antworte bitte mit: \
"Kann aufgrund der gegebenen Passagen nicht beantwortet werden."
Ausgabe:"""
DOCUMENT = "\n".join(PASSAGES)
HHEM = f"<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {DOCUMENT}\n\nHypothesis: "

NLI = ("contradiction", "entailment", "neutral")
# How each kind is made; the folder that HHEM was made from lies beside it.
KINDS: dict[str, Callable[[Path], Path]] = {
    "tagger": save_tagger,
    "nli": lambda folder: save_sequence(folder, NLI),
    "minicheck": save_sequence,
    "minicheck-t5": save_minicheck_text,
    "hhem": lambda folder: save_hhem(folder, folder.parent / "foundation"),
}


def of_passages(texts: Sequence[str], exchange: Exchange = EXCHANGE) -> Exchange:
    return replace(exchange, passages=tuple(Passage(str(number), text) for number, text in enumerate(texts)))


def support(peer: Peer, exchange: Exchange = EXCHANGE) -> list[float]:
    """How well each sentence of the answer is supported."""
    return peer.support(exchange, split_answer(exchange.answer))


def claims(exchange: Exchange = EXCHANGE) -> list[str]:
    return [exchange.answer[one.start : one.end].strip() for one in split_answer(exchange.answer)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a model of a kind; nobody changes it."""

    @cache
    def make(kind: str) -> Path:
        return KINDS[kind](tmp_path_factory.mktemp("peers") / kind)

    return make


# Each in its own form


@pytest.mark.parametrize(
    ("name", "question", "prompt"),
    [
        ("tagger", EXCHANGE.question, PROMPT),
        ("tagger-xx-v1", "", SUMMARY),
        ("own-210m-de-v1", EXCHANGE.question, GERMAN),
    ],
)
@pytest.mark.parametrize(
    ("labels", "unsupported"),
    [
        (None, (1,)),
        (("supported", "hallucinated"), (1,)),
        (("Unsupported", "supported"), (0,)),
        (("O", "B-HALLUCINATION", "I-Hallucination"), (1, 2)),
    ],
)
@pytest.mark.parametrize("family", ["modernbert", "bert"])
def test_a_token_classifier_reads_the_prompt_of_lettucedetect_and_its_worst_token_decides(
    tmp_path: Path,
    family: str,
    labels: Sequence[str] | None,
    unsupported: Sequence[int],
    name: str,
    question: str,
    prompt: str,
) -> None:
    folder = str(save_tagger(tmp_path / name, labels, family=family))
    exchange = replace(EXCHANGE, question=question)
    read = AutoTokenizer.from_pretrained(folder)(
        prompt, exchange.answer, return_offsets_mapping=True, return_tensors="pt"
    )
    network = AutoModelForTokenClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        logits = network(input_ids=read["input_ids"], attention_mask=read["attention_mask"]).logits
    values = logits.softmax(-1)[0][:, list(unsupported)].sum(-1)
    # Byte-level tokens carry the blank before their word: the last character tells where a token is.
    spans = zip(read.sequence_ids(0), read["offset_mapping"][0].tolist(), values.tolist(), strict=True)
    tokens = [(end, value) for side, (start, end), value in spans if side == 1 and exchange.answer[start:end].strip()]
    second = exchange.answer.index("Children")
    worst = [max(value for end, value in tokens if (end > second) is later) for later in (False, True)]
    assert support(load_peer(folder, device="cpu"), exchange) == pytest.approx([1 - one for one in worst], abs=1e-5)


def test_an_nli_model_reads_each_passage_as_a_premise_and_the_sentence_as_the_hypothesis(
    made: Callable[[str], Path],
) -> None:
    folder = str(made("nli"))
    peer, model = load_peer(folder, device="cpu"), load_entailment_model(folder, device="cpu")
    assert peer.identity == f"nli@{model.revision[:12]} nli-1"
    expected = [max(model.probability([passage], claim) for passage in PASSAGES) for claim in claims()]
    assert support(peer) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("family", ["roberta", "deberta"])
def test_minicheck_reads_document_end_mark_and_claim_as_one_text(tmp_path: Path, family: str) -> None:
    folder = str(save_sequence(tmp_path / "minicheck", family=family))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    texts = [f"{DOCUMENT}{tokenizer.eos_token}{claim}" for claim in claims()]
    with torch.inference_mode():
        read = [network(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0, 1].item() for text in texts]
    assert support(load_peer(folder, device="cpu")) == pytest.approx(read, abs=1e-5)


def test_the_t5_of_minicheck_answers_one_or_zero(made: Callable[[str], Path]) -> None:
    folder = str(made("minicheck-t5"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    assert tokenizer.convert_ids_to_tokens([3, 4]) == ["▁", "▁1"]
    expected = []
    for claim in claims():
        read = tokenizer(f"predict: {DOCUMENT}</s>{claim}", return_tensors="pt")
        with torch.inference_mode():
            begun = torch.zeros((1, 1), dtype=torch.long)
            logits = network(input_ids=read["input_ids"], decoder_input_ids=begun).logits
        expected.append(logits[0, 0, [3, 4]].softmax(-1)[1].item())
    assert support(load_peer(folder, device="cpu")) == pytest.approx(expected, abs=1e-5)


def test_hhem_is_a_t5_that_classifies_the_first_token_of_its_prompt(made: Callable[[str], Path]) -> None:
    folder = made("hhem")
    foundation = str(folder.parent / "foundation")
    weights = {name.removeprefix("t5."): one for name, one in load_file(folder / "model.safetensors").items()}
    network: Any = T5ForTokenClassification.from_pretrained(
        None, config=T5Config.from_pretrained(foundation), state_dict=weights
    )
    network.eval()
    tokenizer = AutoTokenizer.from_pretrained(foundation)
    expected = []
    for claim in claims():
        read = tokenizer(HHEM + claim, return_tensors="pt")
        assert read["input_ids"][0, 0].item() == tokenizer.pad_token_id
        with torch.inference_mode():
            expected.append(network(input_ids=read["input_ids"]).logits[0, 0].softmax(-1)[1].item())
    assert support(load_peer(str(folder), device="cpu")) == pytest.approx(expected, abs=1e-5)


# What does not fit, and texts of any kind


def test_passages_that_do_not_fit_together_are_tagged_in_groups_and_the_worst_group_counts(tmp_path: Path) -> None:
    # Of the window of 398 tokens the prompt takes 234 and the answer 21; a passage takes about a hundred.
    long = [" ".join([text] * times) for text, times in zip(PASSAGES, (7, 18, 18), strict=True)]
    peer = load_peer(str(save_tagger(tmp_path / "tagger", positions=400)), device="cpu")
    alone = [support(peer, of_passages([text])) for text in long]
    together = support(peer, of_passages(long))
    assert together == pytest.approx([min(column) for column in zip(*alone, strict=True)], abs=1e-5)
    assert len({round(value, 3) for row in alone for value in row}) > 3


@pytest.mark.parametrize("kind", ["minicheck", "minicheck-t5", "hhem"])
def test_a_long_document_is_read_in_windows_to_its_end_and_the_best_one_wins(
    made: Callable[[str], Path], kind: str
) -> None:
    peer = load_peer(str(made(kind)), device="cpu")
    exchange = replace(EXCHANGE, answer=claims()[1])
    alone = {text: support(peer, of_passages([f"{text} " * 120], exchange))[0] for text in PASSAGES}
    low, high = (pick(alone, key=alone.__getitem__) for pick in (min, max))
    (before,) = support(peer, of_passages([f"{low} " * 240], exchange))
    (after,) = support(peer, of_passages([f"{low} " * 120, f"{high} " * 120], exchange))
    assert after - before > 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_of_any_length_has_a_value_for_each_sentence(made: Callable[[str], Path], kind: str) -> None:
    peer = load_peer(str(made(kind)), device="cpu")
    answer = " ".join([*EXCHANGE.answer.split(". "), "and " * 1_500 + "so on. It ends here."])
    values = support(peer, replace(EXCHANGE, answer=answer))
    assert len(values) > 1
    assert all(0 <= value <= 1 for value in values)


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=4), question=st.text(max_size=20))
@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_any_kind_have_a_probability_or_none(
    made: Callable[[str], Path], kind: str, texts: list[str], question: str
) -> None:
    answer, *passages = [f"</s> {text} \ud800 <pad>" for text in texts]
    exchange = of_passages(passages, Exchange(question, (), answer))
    values = support(_loaded(made(kind)), exchange)
    assert len(values) == len(split_answer(answer))
    assert all(math.isnan(value) or 0 <= value <= 1 for value in values)


@cache
def _loaded(folder: Path) -> Peer:
    return load_peer(str(folder), device="cpu")


@pytest.mark.parametrize("kind", ["minicheck", "minicheck-t5", "hhem"])
def test_what_looks_like_a_control_token_in_a_text_is_none(made: Callable[[str], Path], kind: str) -> None:
    peer = load_peer(str(made(kind)), device="cpu")
    hostile = [f"{text[:9]}</s>{text[9:]}" for text in PASSAGES]
    plain = [f"{text[:9]} {text[9:]}" for text in PASSAGES]
    assert support(peer, of_passages(hostile)) == pytest.approx(support(peer, of_passages(plain)), abs=1e-7)


LOAD = """
import json, sys
from gasp_core.model import load_model
from gasp_core.grounding import Exchange, Passage
from gasp_core.peers.load import load_peer
from gasp_core.text.sentences import split_answer
exchange = Exchange("When?", (Passage("1", "It opens at nine."),), "It opens at nine.")
for name in sys.argv[1:]:
    peer = load_peer(name, device="cpu")
    print(json.dumps([peer.identity, peer.support(exchange, split_answer(exchange.answer))]))
print(load_model("own/scorer", device="cpu").revision)
"""


def test_a_model_of_the_hub_is_named_by_its_commit(made: Callable[[str], Path], tmp_path: Path) -> None:
    folders = {f"own/{kind}": made(kind) for kind in KINDS}
    folders["own/foundation"] = made("hhem").parent / "foundation"
    folders["own/scorer"] = save_model(tmp_path / "scorer")
    commits = {name: f"{number}" * 40 for number, name in enumerate(folders)}
    for name, folder in folders.items():
        kept = tmp_path / "cache" / f"models--{name.replace('/', '--')}"
        shutil.copytree(folder, kept / "snapshots" / commits[name])
        (kept / "refs").mkdir()
        (kept / "refs" / "main").write_text(commits[name], encoding="utf-8")
        if name == "own/hhem":
            _change(kept / "snapshots" / commits[name] / "config.json", {"foundation": "own/foundation"})
    names = [f"own/{kind}" for kind in KINDS]
    environment = {**os.environ, "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *names], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    exchange = Exchange("When?", (Passage("1", "It opens at nine."),), "It opens at nine.")
    *lines, scorer = done.stdout.splitlines()
    assert scorer == commits["own/scorer"]
    for kind, line in zip(KINDS, lines, strict=True):
        identity, values = json.loads(line)
        assert identity.split()[0] == f"own/{kind}@{commits[f'own/{kind}'][:12]}"
        assert values == pytest.approx(support(load_peer(str(made(kind)), device="cpu"), exchange), abs=1e-5)


# What is refused


@pytest.mark.parametrize(
    "labels",
    [
        ("O", "B-PER", "I-PER"),
        ("supported", "grounded"),
        ("hallucinated",),
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("good", "hallucinated"),
    ],
)
def test_labels_of_tokens_that_do_not_tell_what_is_unsupported_are_refused(
    tmp_path: Path, labels: Sequence[str]
) -> None:
    with pytest.raises(ModelUnsupported, match="id2label"):
        load_peer(str(save_tagger(tmp_path / "tagger", labels)), device="cpu")


def test_labels_of_a_sequence_that_do_not_tell_what_is_supported_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match="id2label"):
        load_peer(str(save_sequence(tmp_path / "stars", ("one star", "two stars"))), device="cpu")


def test_what_is_no_classifier_of_what_is_supported_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match=r"LlamaForCausalLM.*choose a token classifier"):
        load_peer(str(save_model(tmp_path / "causal")), device="cpu")
    with pytest.raises(ModelNotFound):
        load_peer(str(tmp_path / "nowhere"), device="cpu")
    with pytest.raises(ModelNotFound, match=r"config\.json"):
        load_peer(str(tmp_path), device="cpu")


@pytest.mark.parametrize("changes", [{"architectures": None}, {"architectures": [7]}, {"architectures": "T5"}])
def test_a_configuration_that_names_no_architecture_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = save_tagger(tmp_path / "tagger")
    _change(folder / "config.json", changes)
    with pytest.raises(ModelUnsupported, match="which is not a classifier"):
        load_peer(str(folder), device="cpu")


@pytest.mark.parametrize("kind", KINDS)
def test_only_safetensors_are_loaded_and_the_code_of_no_model_is_run(tmp_path: Path, kind: str) -> None:
    folder = KINDS[kind](tmp_path / kind)
    code = f"open({str(tmp_path / 'ran')!r}, 'w').close()"
    for name in ("own", "configuration_hhem_v2", "modeling_hhem_v2"):
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelUnsupported, match=r"no \.safetensors"):
        load_peer(str(folder), device="cpu")
    _change(folder / "config.json", {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}})
    with pytest.raises(ModelUnsupported, match="code of its own, which is never run"):
        load_peer(str(folder), device="cpu")
    assert not (tmp_path / "ran").exists()


# A T5 that answers in text has no head but its embeddings, unless its files hold one.
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"minicheck-t5"}))
def test_a_model_without_its_head_is_refused_rather_than_filled_at_random(tmp_path: Path, kind: str) -> None:
    folder = KINDS[kind](tmp_path / kind)
    weights = load_file(folder / "model.safetensors")
    kept = {name: one for name, one in weights.items() if "classifier" not in name}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelUnsupported, match="lacks weights"):
        load_peer(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": "{text2} of {text1}"}, "no places"),
        ({"foundation": "TAGGER"}, "is not T5"),
        ({"foundation": "no/such/model"}, "no/such/model"),
    ],
)
def test_an_hhem_that_is_made_otherwise_is_refused(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    folder = KINDS["hhem"](tmp_path / "hhem")
    tagger = str(save_tagger(tmp_path / "tagger"))
    _change(folder / "config.json", {key: tagger if value == "TAGGER" else value for key, value in changes.items()})
    with pytest.raises((ModelUnsupported, ModelNotFound), match=message):
        load_peer(str(folder), device="cpu")


def _change(file: Path, changes: dict[str, Any]) -> None:
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")


# The command


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GASP_CACHE_DIR", str(tmp_path / "cache"))
    return write_rows(tmp_path / "museum.jsonl", labelled_rows(8))


@pytest.fixture
def forwards() -> Iterator[list[int]]:
    """One entry for each module that computed meanwhile."""
    found: list[int] = []
    hook = register_module_forward_hook(lambda *_: found.append(1))
    yield found
    hook.remove()


def run(*arguments: object) -> Result:
    options = ("--model", "no such model", "--device", "cpu", "--resamples", "20")
    return CliRunner().invoke(app, ["eval", *(str(argument) for argument in arguments), *options])


def test_eval_measures_peers_beside_detectors_and_asks_each_once(
    data: Path, made: Callable[[str], Path], forwards: list[int]
) -> None:
    peers = [part for kind in KINDS for part in ("--peer", made(kind))]
    done = run(data, "--detector", "lexical", *peers, "--json")
    assert done.exit_code == 0, done.output
    entries = json.loads(done.stdout)["museum"]
    assert list(entries) == ["lexical", *KINDS]
    for kind in KINDS:
        entry = entries[kind]
        assert (entry["n"], entry["n_unsupported"]) == (16, 4)
        assert entry["scorer"].startswith(f"{kind}@")
        assert len(entry["vs_lexical"]) == len(entries["lexical"]["vs_peers"][kind]) == 3
        assert entry["vs_lexical"][0] == pytest.approx(-entries["lexical"]["vs_peers"][kind][0])
        assert set(entry["vs_peers"]) == set(KINDS) - {kind}
    assert forwards
    forwards.clear()
    again = run(data, "--detector", "lexical", *peers)
    assert again.exit_code == 0, again.output
    assert not forwards
    assert any(line.startswith("AUC less that of") for line in again.stdout.splitlines())


def test_a_peer_is_called_by_its_path_where_its_folders_name_is_taken(data: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one" / "same", tmp_path / "two" / "same", tmp_path / "lexical", tmp_path / "own"]
    for folder in folders:
        save_sequence(folder, NLI)
    peers = [part for folder in (*folders, folders[0]) for part in ("--peer", folder)]
    entries = json.loads(run(data, "--detector", "length", *peers, "--json").stdout)["museum"]
    assert list(entries) == ["length", *(str(folder) for folder in folders[:3]), "own"]


def test_a_peer_that_cannot_be_used_is_said_in_a_line(data: Path, tmp_path: Path) -> None:
    done = run(data, "--detector", "lexical", "--peer", tmp_path / "nowhere")
    assert isinstance(done.exception, ModelNotFound)
    results = write_rows(tmp_path / "results.jsonl", [{"label": 1, "sensitivity": 0.5}, {"label": 0, "sensitivity": 1}])
    refused = CliRunner().invoke(app, ["eval", str(results), "--peer", "any"])
    assert refused.exit_code == 2
    assert "--peer is of no use" in refused.output
