"""From a flagged sentence through a reviewer's label to the next version of the threshold."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gasp_core.packaged import PACKAGED_MODEL
from tests.brokers import Broker
from tests.dying_worker import dying_worker
from tests.reviewer import answers, send_labels, tasks
from tests.soak.scorer import fraction
from tests.waiting import wait_until
from tests.workers import Deployment
from worker.settings.roles import Role

Deploy = Callable[..., Deployment]

CITIES = ("Arvenna", "Belmora", "Cestria", "Dunvale", "Elsmoor", "Ferrol", "Gantry", "Holm", "Istra", "Jurmala")
# A few more than MIN_SUPPORTED and MIN_UNSUPPORTED: each answer has a sentence of either kind.
ANSWERS = 36
INVENTED = (
    "The founder was a retired admiral who collected glass eyes.",
    "Visitors may feed the penguins in the cellar on Fridays.",
    "A tunnel leads from the library to the cathedral.",
    "Its roof was destroyed by a storm in the spring of 1911.",
)
# As the hourly job would find it after a day with few sentences of the most different scores: every one is asked about.
USUAL_DAY = """
INSERT INTO review_paces (app, scorer_id, expected_flagged, expected_sampled, spread)
SELECT '{app}', id, 1, 1, 1000 FROM scorers
"""
# What a night does to the tick that has been run.
A_DAY_PASSES = "UPDATE job_runs SET scheduled_for = scheduled_for - interval '1 day' WHERE job = 'recalibrate'"


def half_invented(number: int) -> dict[str, Any]:
    """An answer whose first sentence is in the passages and whose second is nowhere."""
    city, closing = CITIES[number % len(CITIES)], 3 + number % 7
    passage = f"The {city} museum closes at {closing} in the afternoon, and its café serves soup until noon."
    return {
        "interaction_id": f"museum-{number}",
        "app": "museums",
        "question": f"When does the museum of {city} close?",
        "passages": [{"id": "hours", "text": passage}, {"id": "other", "text": "Dogs must stay outside."}],
        "answer": f"The {city} museum closes at {closing} in the afternoon. {INVENTED[number % len(INVENTED)]}",
    }


def deploy_loop(broker: Broker, deploy: Deploy, **settings: object) -> Deployment:
    """A deployment with the topics of the loop, whose every sentence may be asked about."""
    topics = {name: broker.create_topic() for name in ("review_tasks_topic", "review_labels_topic")}
    deployment = deploy(broker, **topics, review_wait_s=5, **settings)
    policy = ("review", "policy", "--daily-sentences", "100000", "--sampled-share", "0.5")
    assert deployment.run(*policy).returncode == 0
    return deployment


def test_a_reviewers_labels_become_the_next_threshold_version(tansu: Broker, deploy: Deploy, tmp_path: Path) -> None:
    deployment = deploy_loop(tansu, deploy, model=PACKAGED_MODEL, detector="auto")
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(half_invented(number)) + "\n" for number in range(ANSWERS)), encoding="utf-8")

    with deployment.worker("consume") as scoring, deployment.worker("maintain") as jobs:
        wait_until(lambda: deployment.count("scorers"), what="the scorer")
        deployment.execute(USUAL_DAY.format(app="museums"))
        assert deployment.run("replay", str(file)).returncode == 0
        # A real model reads them, on a machine that may have much else to do.
        wait_until(lambda: deployment.count("ledger") == ANSWERS, what="every answer", deadline_s=600)
        assert deployment.count("review_sentences WHERE reason = 'flagged'") > 0
        wait_until(lambda: len(tasks(deployment)) == deployment.count("review_tasks"), what="all tasks on their topic")

        send_labels(
            deployment,
            [
                label
                for task in tasks(deployment)
                for label in answers(
                    task, lambda sentence: "unsupported" if sentence["text"].strip() in INVENTED else "supported"
                )
            ],
        )
        wait_until(
            lambda: deployment.count("review_tasks WHERE state = 'labelled'") == deployment.count("review_tasks"),
            what="all labels to be taken in",
        )
        wait_until(lambda: deployment.count("job_runs WHERE job = 'recalibrate'"), what="the first tick")
        assert jobs.end(signal.SIGTERM) == 0
        deployment.execute(A_DAY_PASSES)
        with deployment.worker("maintain"):
            wait_until(lambda: deployment.count("calibration_runs WHERE outcome = 'new'") == 2, what="new versions")
        deployment.broker.send(deployment.topic, [json.dumps(half_invented(1000)).encode()])
        wait_until(lambda: deployment.count("interactions") == ANSWERS + 1, what="one more answer")
        assert scoring.process.poll() is None

    (version,) = deployment.rows("SELECT * FROM thresholds WHERE is_active AND app = 'museums'")
    assert version["learned_from"] == "calibrated"
    assert version["flag_below"] != 2.0, "the first of the fused detector"
    judged = deployment.rows("SELECT * FROM v_sentences WHERE interaction_id = 'museum-1000' ORDER BY sentence_index")
    assert {row["threshold_version"] for row in judged} == {"museums/1"}
    supported, invented = (row["unsupported_probability"] for row in judged)
    assert 0 < supported < invented < 1
    before = deployment.rows("SELECT DISTINCT threshold_version FROM v_sentences WHERE interaction_id <> 'museum-1000'")
    assert before == [{"threshold_version": "*/1"}]


STEPS = (
    ("before Settlements.settle", (Role.CONSUME,)),
    ("after Settlements.settle", (Role.CONSUME,)),
    ("after Outbox.claim", (Role.MAINTAIN,)),
    ("after Outbox.note_sending", (Role.MAINTAIN,)),
    ("before Outbox.finish", (Role.MAINTAIN,)),
    ("before LabelSettlements.settle", (Role.MAINTAIN,)),
    ("after LabelSettlements.settle", (Role.MAINTAIN,)),
    ("before CalibrationRuns.book", (Role.MAINTAIN,)),
    ("after CalibrationRuns.book", (Role.MAINTAIN,)),
)


def logged(number: int) -> dict[str, Any]:
    """An answer of two sentences, whose scores follow from their text."""
    return {
        "interaction_id": f"talk-{number}",
        "app": "talks",
        "question": "What is there to say?",
        "passages": ["Nothing is said of that here."],
        "answer": f"This is the first sentence of answer {number}. And that is the second one of {number}.",
    }


def opinion(sentence: dict[str, Any]) -> str:
    """A reviewer who finds the lower scores unsupported, but not all of them and not only these."""
    return "unsupported" if sentence["score"] + fraction("doubt", sentence["text"]) < 1.5 else "supported"


def test_a_kill_between_any_two_steps_of_the_loop_loses_no_task_and_no_label(
    tansu: Broker, deploy: Deploy, tmp_path: Path
) -> None:
    deployment = deploy_loop(tansu, deploy)
    log = tmp_path / "workers.log"
    labels: list[dict[str, Any]] = []

    def die(step: str, roles: tuple[Role, ...]) -> None:
        with dying_worker(deployment.environment(), log, roles, step) as process:
            assert process.wait(60) == -signal.SIGKILL, f"{step}: not reached"

    def done(roles: tuple[Role, ...], condition: Callable[[], object], what: str) -> None:
        with dying_worker(deployment.environment(), log, roles):
            wait_until(condition, what=what)

    with dying_worker(deployment.environment(), log, (Role.CONSUME,)):
        wait_until(lambda: deployment.count("scorers"), what="the scorer")
    deployment.execute(USUAL_DAY.format(app="talks"))
    deployment.broker.send(deployment.topic, [json.dumps(logged(number)).encode() for number in range(120)])
    for step, roles in STEPS[:2]:
        die(step, roles)
    done((Role.CONSUME,), lambda: deployment.count("ledger") == 120, "every answer")
    issued = deployment.count("review_tasks")
    assert issued == deployment.count("outbox") > 60

    for step, roles in STEPS[2:5]:
        die(step, roles)
        # Its lease runs out, as it would after two minutes.
        deployment.execute("UPDATE outbox SET leased_until = now() - interval '1 second' WHERE state = 'running'")
    done((Role.MAINTAIN,), lambda: deployment.count("outbox WHERE state = 'done'") == issued, "every task to be told")
    told = tasks(deployment)
    assert sorted(task["event_id"] for task in told) == sorted(
        str(row["event_id"]) for row in deployment.rows("SELECT event_id FROM outbox")
    ), "each event once on the topic"

    labels = [label for task in told for label in answers(task, opinion)]
    send_labels(deployment, labels)
    for step, roles in STEPS[5:7]:
        die(step, roles)
    done((Role.MAINTAIN,), lambda: deployment.count("review_labels") == len(labels), "every label")

    for step, roles in STEPS[7:]:
        deployment.execute(A_DAY_PASSES)
        die(step, roles)
    deployment.execute(A_DAY_PASSES)
    done(
        (Role.MAINTAIN,),
        lambda: deployment.count("calibration_runs WHERE app = 'talks' AND outcome <> 'refused'"),
        "a recalibration",
    )

    assert deployment.count("review_labels") == deployment.count("v_review_labels") == len(labels)
    assert deployment.count("ledger WHERE outcome = 'labelled'") == len(labels)
    assert deployment.count("thresholds WHERE is_active AND app = 'talks'") == 1
    runs = deployment.rows("SELECT threshold_id FROM calibration_runs WHERE outcome = 'new'")
    versions = deployment.rows("SELECT id FROM thresholds WHERE learned_from = 'calibrated'")
    assert sorted(row["threshold_id"] for row in runs) == sorted(row["id"] for row in versions)
