"""Who gives second opinions in tests: a tiny random classifier, and a chat endpoint that answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WORDS = ("museum", "opens", "closes", "nine", "six", "train", "leaves", "at", "the", "dogs", "must", "stay", "outside")
MARKS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
POSITIONS = 34
# How soon the endpoint notices that it is to stop.
STOP_LOOK_S = 0.02


def save_classifier(folder: Path, labels: Sequence[str], *, tokens: int | None = None) -> Path:
    """Write a random BERT classifier as safetensors with a tokenizer of whole words; gives the folder."""
    import torch  # here: whoever only wants the endpoint need not wait for it
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate((*MARKS, *WORDS))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    wrap: Any = PreTrainedTokenizerFast
    signs = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    wrapped = wrap(tokenizer_object=tokenizer, model_max_length=tokens, **signs)
    torch.manual_seed(5)
    config: Any = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        # Larger than usual, so that a random model is sure of something.
        initializer_range=0.8,
    )
    BertForSequenceClassification(config).save_pretrained(str(folder))
    wrapped.save_pretrained(str(folder))
    return folder


@dataclass(frozen=True)
class Answer:
    """What the endpoint does with a post. Without a body it answers nothing until it is closed."""

    status: int = 200
    body: bytes | None = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Endpoint:
    """A chat endpoint that gives the answers in turn, the last again and again."""

    answers: list[Answer]
    posts: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def next_answer(self) -> Answer:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def saying(content: str) -> Answer:
    """A completion with this content."""
    completion = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": {"content": content}}]}
    return Answer(body=json.dumps(completion).encode())


def judging(verdict: str = "unsupported", probability: float = 0.9) -> Answer:
    """A completion with a judgement as it was asked for."""
    return saying(json.dumps({"verdict": verdict, "probability": probability}))


@contextmanager
def endpoint(*answers: Answer) -> Iterator[Endpoint]:
    """A real server on this machine."""
    served = Endpoint(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.posts.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            answer = served.next_answer()
            if answer.body is None:
                served.closing.wait(60)
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that had enough is no news."""

    server = Server(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1/chat/completions?token=of-ours"
    thread = threading.Thread(target=server.serve_forever, args=(STOP_LOOK_S,))
    thread.start()
    try:
        yield served
    finally:
        served.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
