"""A year of one app in the calibration benchmark: its traffic, its reviewers, and its recalibrations by one method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gasp_core.detectors.two_pass import GAP
from tests.benchmarks.calibration_grades import METHODS, Grade, grade
from tests.benchmarks.calibration_naive import recalibrate_naively
from tests.benchmarks.calibration_reviewers import BURST, HABITS, WRONG, Habit, Question
from tests.benchmarks.calibration_seeded import keep_seed
from tests.benchmarks.calibration_traffic import Answers
from worker.rules.calibration.labels import Floats, LabelledSentence, Population, Unanswered
from worker.rules.calibration.recalibrate import InForce, Recalibration, recalibrate
from worker.rules.policy import Objective, ReviewPolicy
from worker.rules.selection import Reason, SamplingBudget, expected_weights, select

DAYS = 360
MONTH = 30
WINDOW_DAYS = 180
ANSWERS_A_DAY = 12
DAILY_SENTENCES = 5
SAMPLED_SHARE = 0.4
SPREAD_NATS = 0.5
# The first grade is given at the first recalibration with so many labelled sentences.
LABELS = 300
TARGETS = {
    Objective.RECALL: {"ragtruth_qa_dev": 0.8, "lfqa_dev": 0.8},
    Objective.PRECISION: {"ragtruth_qa_dev": 0.18, "lfqa_dev": 0.5},
    Objective.COST: {"ragtruth_qa_dev": 6.0, "lfqa_dev": 6.0},
}


SEEDED = GAP.require_bounds()


@dataclass(slots=True)
class App:
    """One app on its way through the year."""

    answers: Answers
    policy: ReviewPolicy
    method: str
    rng: np.random.Generator
    in_force: InForce = field(default_factory=lambda: InForce(SEEDED.flag_below, SEEDED.attribute_below))
    labelled: list[LabelledSentence] = field(default_factory=list)
    labels_given: int = 0
    habit: Habit | None = None
    weigh: bool = True
    waiting: list[Question] = field(default_factory=list)
    unread: list[Question] = field(default_factory=list)
    days: list[int] = field(default_factory=list)
    traffic: list[Floats] = field(default_factory=list)
    expected: tuple[float | None, float | None] = (None, None)

    def live(self, day: int) -> None:
        """A day of traffic, with what reviewers answer to what is selected of it."""
        issued = {Reason.FLAGGED: 0, Reason.SAMPLED: 0}
        drawn = self.rng.choice(len(self.answers.starts) - 1, self._answers_of(day), p=self.answers.chances(day))
        for answer in drawn.tolist():
            at = slice(self.answers.starts[answer], self.answers.starts[answer + 1])
            gaps = self.answers.gaps[at]
            self.traffic.append(gaps)
            task = select(gaps.tolist(), self.in_force.flag_below, self._pace(issued), self.rng.random())
            lowest = min((float(gaps[one.sentence_index]) for one in task.sentences), default=0.0) if task else 0.0
            for one in task.sentences if task else ():
                issued[one.reason] += 1
                cluster = f"{self.answers.name}-{len(self.traffic)}"
                gap, unsupported = (
                    float(gaps[one.sentence_index]),
                    bool(self.answers.unsupported[at][one.sentence_index]),
                )
                self.waiting.append(Question(day, gap, unsupported, one.probability, cluster, lowest))
        self.days.append(len(drawn))
        self._answer(day)
        self._look_ahead()

    def _answers_of(self, day: int) -> int:
        every = self.habit.burst_every if self.habit else 0
        return ANSWERS_A_DAY * (BURST if every and day % every == 0 else 1)

    def _answer(self, day: int) -> None:
        """Read what waits, if it is the day for it; what is left over is never read."""
        if self.habit is None:
            read = [(one, WRONG) for one in self.waiting]
        elif (day + 1) % self.habit.days:
            return
        else:
            read = self.habit.read(self.waiting, self.rng)
        for place, (one, wrong) in enumerate(read):
            found = self._reviewed(one.unsupported, wrong)
            time = day + place / (len(read) + 1)
            self.labelled.append(LabelledSentence(one.score, found, one.probability, one.cluster, time, float(one.day)))
        answered = {id(one) for one, _ in read}
        self.unread += [one for one in self.waiting if id(one) not in answered]
        self.waiting = []

    def _pace(self, issued: dict[Reason, int]) -> SamplingBudget:
        flagged = DAILY_SENTENCES if self.method == "naive" else self.policy.flagged_budget
        return SamplingBudget(
            flagged_budget=flagged,
            flagged_issued=issued[Reason.FLAGGED],
            expected_flagged=self.expected[0],
            sampled_budget=DAILY_SENTENCES - flagged,
            sampled_issued=issued[Reason.SAMPLED],
            expected_sampled=self.expected[1],
            spread=SPREAD_NATS,
        )

    def _reviewed(self, unsupported: bool, wrong: float) -> bool:  # noqa: FBT001 - what is true of a sentence
        """What a lone reviewer says, or most of two and, where they differ, a third."""
        first, second, third = (bool(unsupported ^ mistaken) for mistaken in self.rng.random(3) < wrong)
        if self.policy.reviewers == 1:
            self.labels_given += 1
            return first
        self.labels_given += 2 if first == second else 3
        return first if first == second else third

    def _look_ahead(self) -> None:
        """Expect of the next day what the last week brought."""
        week = self.traffic[-sum(self.days[-7:]) :]
        flagged, sampled = expected_weights(np.concatenate(week), self.in_force.flag_below, SPREAD_NATS)
        days = len(self.days[-7:])
        self.expected = (flagged / days, sampled / days)

    def population(self) -> Population:
        """The traffic of the last month."""
        recent = self.traffic[-sum(self.days[-MONTH:]) :]
        scores = np.concatenate(recent)
        return Population(scores, np.array([one.min() for one in recent]), len(scores) / MONTH)

    def recent(self, day: int) -> list[LabelledSentence]:
        """The labels that a recalibration on that day looks at."""
        return [one for one in self.labelled if one.labelled_at > day - WINDOW_DAYS]

    def unanswered(self, day: int) -> list[Unanswered]:
        """What was asked in that time and not answered."""
        asked = [*self.unread, *self.waiting]
        return [Unanswered(one.score, one.probability, float(one.day)) for one in asked if one.day > day - WINDOW_DAYS]

    def recalibrated(self, pooled: list[LabelledSentence], day: int) -> Recalibration:
        """What the method makes of the labels so far, which is in force from now on."""
        if self.method == "seeded":
            return keep_seed(self.policy)
        labelled = self.recent(day)
        if self.method == "naive":
            result = recalibrate_naively(labelled, self.policy, self.in_force)
        else:
            name = self.answers.name
            seen, unanswered = self.population(), self.unanswered(day) if self.weigh else []
            if not self.weigh:
                labelled = [replace(one, asked_at=None) for one in labelled]
            result = recalibrate(name, labelled, pooled, seen, None, self.policy, self.in_force, unanswered)
        self.in_force = InForce(result.flag_below, result.attribute_below, result.curve or self.in_force.curve)
        return result


def year(pools: list[Answers], objective: Objective, reviewers: int, seed: int, run: int) -> list[Grade]:
    """The grades of every method in one year; each meets traffic of its own."""
    policies = [policy_of(answers, objective, reviewers) for answers in pools]
    return [
        one
        for number, method in enumerate(METHODS)
        for one in _grades(pools, policies, method, run, np.random.default_rng([seed, run, number]))
    ]


def habitual_year(
    pools: list[Answers],
    objective: Objective,
    kind: str,
    seed: int,
    run: int,
    weigh: bool = True,  # noqa: FBT001, FBT002
) -> list[Grade]:
    """The grades of ours in a year whose two reviewers have the habit of that name."""
    policies = [policy_of(answers, objective, 2) for answers in pools]
    rng = np.random.default_rng([seed, run, len(METHODS), list(HABITS).index(kind)])
    return list(_grades(pools, policies, "ours", run, rng, HABITS[kind], weigh))


def _grades(
    pools: list[Answers],
    policies: list[ReviewPolicy],
    method: str,
    run: int,
    rng: np.random.Generator,
    habit: Habit | None = None,
    weigh: bool = True,  # noqa: FBT001, FBT002
) -> Iterator[Grade]:
    """One method through the year."""
    apps = [
        App(answers, policy, method, rng, habit=habit, weigh=weigh)
        for answers, policy in zip(pools, policies, strict=True)
    ]
    graded: set[str] = set()
    for day in range(DAYS):
        for app in apps:
            app.live(day)
        if (day + 1) % MONTH:
            continue
        pooled = [one for app in apps for one in app.recent(day)]
        for app in apps:
            result = app.recalibrated(pooled, day)
            name = app.answers.name
            first = name not in graded and len(app.labelled) >= LABELS
            graded |= {name} if first else set()
            for moment in ["first"] * first + ["last"] * (day == DAYS - 1):
                facts = {
                    "run": run,
                    "day": day,
                    "moment": moment,
                    "labels": len(app.labelled),
                    "given": app.labels_given,
                }
                yield grade(app.answers.truth(day), app.policy, method, result, facts)


def policy_of(answers: Answers, objective: Objective, reviewers: int) -> ReviewPolicy:
    """What the app wants."""
    target = TARGETS[objective][answers.name]
    return ReviewPolicy(answers.name, DAILY_SENTENCES, SAMPLED_SHARE, objective, target, 0.2, reviewers, 0.15)
