"""A scripted reviewer: reads the tasks off their topic and answers on the label topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.workers import Deployment
from worker.broker.scan import TopicScan
from worker.rules.records import Record

Opinion = Callable[[dict[str, Any]], str]
"""What the reviewer says of a sentence of a task."""


def tasks(deployment: Deployment) -> list[dict[str, Any]]:
    """Every record of the topic of review tasks, in order."""
    scan = TopicScan(deployment.broker.bootstrap, str(deployment.settings["review_tasks_topic"]))
    return [json.loads(item.value or b"") for item in scan if isinstance(item, Record)]


def answers(task: dict[str, Any], opinion: Opinion, reviewer: str = "rose") -> list[dict[str, Any]]:
    """A label for each sentence that the task asks about."""
    return [
        {
            "tool": "script",
            "external_id": f"{reviewer}:{task['task_id']}:{sentence['index']}",
            "task_id": task["task_id"],
            "sentence_index": sentence["index"],
            "label": opinion(sentence),
            "reviewer": reviewer,
            "labelled_at": task["created_at"],
        }
        for sentence in task["sentences"]
        if sentence["asked"]
    ]


def send_labels(deployment: Deployment, labels: Sequence[dict[str, Any]]) -> None:
    """Onto the label topic."""
    values = [json.dumps(label).encode() for label in labels]
    deployment.broker.send(str(deployment.settings["review_labels_topic"]), values)
