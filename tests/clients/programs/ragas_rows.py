"""The rows of a Ragas dataset."""

import sys
import tempfile
from pathlib import Path

from content import ANSWER, PASSAGES, QUESTION
from ragas.dataset_schema import EvaluationDataset, SingleTurnSample

sample = SingleTurnSample(
    user_input=QUESTION,
    retrieved_contexts=[text for _, text, _, _ in PASSAGES],
    retrieved_context_ids=[name for name, _, _, _ in PASSAGES],
    response=ANSWER,
)
path = Path(tempfile.mkdtemp()) / "rows.jsonl"
EvaluationDataset([sample]).to_jsonl(str(path))
sys.stdout.write(path.read_text())
