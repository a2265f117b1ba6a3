"""Texts stay texts: no tokenizer reads a control token out of a passage, a question or an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from gasp_core.entailment import load_entailment_model
from gasp_core.errors import ModelUnsupported
from gasp_core.grounding import Exchange, Passage
from gasp_core.model import LanguageModel, load_model
from gasp_core.plan import Limits, each_group, plan_exchange
from gasp_core.template import GASP_RAG, PLAIN, PromptTemplate
from gasp_core.text.chunks import context_chunks
from tests.models import TEXT, byte_level_tokenizer
from tests.second_opinions import save_classifier

# Signs of several families; not all of them mark theirs as special.
SPECIAL = ("<s>", "</s>", "<|endoftext|>", "[INST]", "<\uff5cUser\uff5c>")
UNMARKED = ("<tool_call>", "</think>", "[/INST]")
CONTROL = (*SPECIAL, *UNMARKED)
# Added, too, but text: words of a trade, and a run of blanks.
WORDS = ("Ticketverkauf", "    ", "\n\n\n")


def byte_level() -> Tokenizer:
    """As GPT-2, Llama 3 and Qwen."""
    found: Tokenizer = byte_level_tokenizer(bos=True).backend_tokenizer
    return found


def pieces() -> dict[str, float]:
    """A small vocabulary of characters, written as sentencepiece does, with its control pieces in it."""
    letters = sorted({*TEXT, *"".join(CONTROL), *"".join(WORDS)} - {" "})
    return {"<unk>": 0.0, **dict.fromkeys(CONTROL, 0.0), "\u2581": -2.0, **dict.fromkeys(letters, -5.0)}


def unigram() -> Tokenizer:
    """As XGLM and T5: control pieces are among those that the model itself chooses from."""
    tokenizer = Tokenizer(models.Unigram(list(pieces().items()), unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def sentencepiece_bpe() -> Tokenizer:
    """As Llama 2 and Gemma: one piece for each blank, no cut before words."""
    vocabulary = {piece: number for number, piece in enumerate(pieces())}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    return tokenizer


def load(folder: Path, tokenizer: Tokenizer) -> LanguageModel:
    """A tiny model with this tokenizer, which has all of CONTROL and WORDS among its added tokens."""
    tokenizer.add_special_tokens([AddedToken(content, special=True, rstrip=True) for content in SPECIAL])
    tokenizer.add_tokens([AddedToken(content, special=False, normalized=False) for content in (*UNMARKED, *WORDS)])
    wrap: Any = PreTrainedTokenizerFast
    wrapped = wrap(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    wrapped.save_pretrained(str(folder))
    torch.manual_seed(3)
    shape: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads: dict[str, Any] = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 1024}
    network: Any = LlamaForCausalLM(LlamaConfig(vocab_size=len(wrapped), **shape, **heads))
    network.save_pretrained(str(folder))
    return load_model(str(folder), device="cpu")


KINDS = pytest.mark.parametrize("kind", [byte_level, unigram, sentencepiece_bpe])


@KINDS
@pytest.mark.parametrize("template", [PLAIN, GASP_RAG], ids=lambda template: template.name)
def test_a_control_token_that_a_text_spells_out_is_text_in_every_part_of_a_prompt(
    tmp_path: Path, kind: Callable[[], Tokenizer], template: PromptTemplate
) -> None:
    model = load(tmp_path, kind())
    control = {model.tokenizer.convert_tokens_to_ids(content) for content in CONTROL}
    assert len(control) == len(CONTROL)
    spelled = " ".join(CONTROL)
    exchange = Exchange(
        f"When{spelled}? {spelled}",
        (Passage("a", f"It opens{spelled} at nine."), Passage("b", f"{spelled} Dogs{spelled}")),
        f"It opens at nine{spelled}. {spelled} Dogs must stay outside.",
    )
    (plan,) = plan_exchange(
        exchange,
        context_chunks(exchange.passages, 5),
        model=model,
        template=template,
        limits=Limits(),
        removals=each_group,
    )
    begin = model.beginning()
    for prompt in plan.prompts:
        assert prompt[: len(begin)] == begin
        assert not control & {*prompt[len(begin) :], *plan.answer_ids}
    # What the wrapper is asked in between changes nothing.
    model.tokenizer("Dogs")
    assert not control & set(model.encode(spelled).ids)


@KINDS
def test_spans_of_such_a_text_are_right(tmp_path: Path, kind: Callable[[], Tokenizer]) -> None:
    model = load(tmp_path, kind())
    text = "It</s>opens <tool_call>at nine.</think>"
    spans = model.encode(text).spans
    assert sorted({place for start, end in spans for place in range(start, end)}) == list(range(len(text)))
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    whole = text.index("</s>"), text.index("</s>") + len("</s>")
    assert whole not in spans


@KINDS
def test_words_and_blanks_that_were_added_stay_tokens(tmp_path: Path, kind: Callable[[], Tokenizer]) -> None:
    model = load(tmp_path, kind())
    for word in WORDS:
        (number,) = model.tokenizer.backend_tokenizer.encode(word, add_special_tokens=False).ids
        assert number in model.encode(f"It opens{word}at nine").ids


def test_the_control_token_before_every_text_stays_one(tmp_path: Path) -> None:
    model = load(tmp_path, byte_level())
    assert model.beginning() == [model.tokenizer.bos_token_id]
    assert model.beginning()[0] not in model.encode("<s>").ids


def test_a_tokenizer_that_cannot_keep_them_apart_is_refused_and_names_them(tmp_path: Path) -> None:
    vocabulary = {word: number for number, word in enumerate(["<unk>", *CONTROL, "opens", "at"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with pytest.raises(ModelUnsupported, match=r"reads <s>, </s>, .* in a text as control tokens; choose another"):
        load(tmp_path, tokenizer)


def test_what_cuts_a_text_in_its_file_does_not_cut_ours(tmp_path: Path) -> None:
    tokenizer = byte_level()
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=64)
    model = load(tmp_path, tokenizer)
    assert model.encode(TEXT).spans[-1][1] == len(TEXT)


def test_a_classifier_reads_such_a_text_as_text_too(tmp_path: Path) -> None:
    model = load_entailment_model(str(save_classifier(tmp_path, ("entailment", "neutral"))), device="cpu")
    marks = [model.tokenizer.cls_token_id, model.tokenizer.sep_token_id]
    read = model.tokenizer("dogs [SEP] must", "stay [CLS] outside").input_ids
    assert [number for number in read if number in marks] == [marks[0], marks[1], marks[1]]
