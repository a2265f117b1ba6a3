"""The checks of a soak: each compares what is there with what must be there, and names what is wrong."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gasp_core.grounding import AnswerGrounding, Method
from schemas.dead_letter import DeadLetter, original_headers
from tests.fixtures.bad_inputs import MAX_MESSAGE_BYTES
from tests.soak.database import Step
from tests.soak.expectation import Expectation, Place, Revision
from tests.soak.messages import FRAGMENTS
from tests.soak.scorer import grounding
from worker.rules.records import Record
from worker.store.verdicts import _support

Rows = Sequence[Mapping[str, Any]]

LEDGER = """
SELECT partition, record_offset, incarnation,
    CASE outcome WHEN 'skipped' THEN 'skipped:' || reason ELSE coalesce(reason, outcome) END AS outcome
FROM ledger"""
INTERACTIONS = """
SELECT id, interaction_id, revision, is_current, question, answer, source_partition, source_offset
FROM interactions ORDER BY interaction_id, revision"""
VERDICTS = """
SELECT v.id, v.interaction_pk, v.lowest_score, v.skip_reason, v.attributed_at IS NOT NULL AS attributed,
    v.lowest_score < t.attribute_below AS wants_attribution
FROM verdicts v LEFT JOIN thresholds t ON t.id = v.threshold_id"""
SENTENCES = """
SELECT verdict_id, sentence_index, start_char, end_char, n_tokens, score, gap, jsd_no_context, surprisal, skip_reason,
    supporting_chunk, supporting_passage, supporting_passages, supporting_drop, support_unlocated, contradicting_chunk
FROM sentences ORDER BY verdict_id, sentence_index"""
TASKS = """
SELECT o.event_id::text AS event_id, o.state, v.id IS NOT NULL AS judged
FROM review_tasks t
LEFT JOIN outbox o ON o.task_pk = t.id
LEFT JOIN verdicts v ON v.interaction_pk = t.interaction_pk AND v.scorer_id = t.scorer_id"""
LAGS = "SELECT partition, lag FROM v_ingest_lag ORDER BY partition"
LOST_OFFSETS = "SELECT * FROM v_lost_offsets"
JOB_RUNS = "SELECT job, scheduled_for, started_at, owner FROM job_runs"
ATTRIBUTIONS = "SELECT verdict_id, count(*) AS n FROM chunk_attributions GROUP BY 1"


@dataclass(slots=True)
class Findings:
    """``wrong`` says each kind of fault once, with how often and where it was met first."""

    lost: int = 0
    unsettled: int = 0
    doubled: int = 0
    regressions: int = 0
    letter_repeats: int = 0
    tasks: int = 0
    task_repeats: int = 0
    tasks_not_chosen_again: int = 0
    runs: int = 0
    runs_of_skewed: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, what: str, places: Sequence[object]) -> int:
        """Note a fault at these places, if there are any; gives how many."""
        if places:
            self.wrong.append(f"{what}: {len(places)}, such as {', '.join(map(str, places[:3]))}")
        return len(places)


def check_topic(findings: Findings, expected: Expectation) -> None:
    """The broker has what it acknowledged, and everything that was to be sent; all of it is settled."""
    findings.lost += findings.add("messages that are not in the topic", expected.missing)
    findings.add("places where the topic has not what was acknowledged", expected.moved)
    findings.unsettled = findings.add("records that are not settled", expected.unsettled)


def check_ledger(findings: Findings, ledger: Rows, expected: Expectation) -> None:
    """Every offset is booked exactly once, with the outcome that was foretold."""
    booked: dict[Place, list[str]] = defaultdict(list)
    for row in ledger:
        booked[row["partition"], row["record_offset"]].append(row["outcome"])
    findings.lost += findings.add("offsets without a ledger row", sorted(expected.outcomes.keys() - booked.keys()))
    findings.doubled += findings.add("offsets booked twice", [at for at, all_ in booked.items() if len(all_) > 1])
    findings.add("ledger rows of no record", sorted(booked.keys() - expected.outcomes.keys()))
    findings.add("incarnations of a topic that was never created anew", [row for row in ledger if row["incarnation"]])
    other = [
        f"{place} is {booked[place][0]}, not {outcome}"
        for place, outcome in expected.outcomes.items()
        if place in booked and booked[place][0] != outcome
    ]
    findings.add("outcomes other than foretold", other)


def check_interactions(findings: Findings, interactions: Rows, expected: Expectation) -> None:
    """Every content is stored once, as the revision that its place in the partition makes it."""
    stored: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in interactions:
        stored[row["interaction_id"]].append(row)
    contents = Counter((row["interaction_id"], row["question"], row["answer"]) for row in interactions)
    revisions = {(name, *_content(one)) for name, all_ in expected.revisions.items() for one in all_}
    findings.lost += findings.add("contents that are not stored", sorted(_ids(revisions - contents.keys())))
    findings.add("contents that were never sent", sorted(_ids(contents.keys() - revisions)))
    findings.doubled += findings.add("contents stored twice", _ids(key for key, n in contents.items() if n > 1))
    wrong = [name for name, all_ in expected.revisions.items() if not _are_revisions(stored.get(name, ()), all_)]
    findings.add("interactions with other revisions than foretold", wrong)


def _content(revision: Revision) -> tuple[str, str]:
    exchange = revision.message.exchange
    assert exchange is not None
    return exchange.question, exchange.answer


def _ids(keys: Iterable[tuple[str, str, str]]) -> list[str]:
    return [key[0] for key in keys]


def _are_revisions(rows: Rows, revisions: Sequence[Revision]) -> bool:
    found = [
        (row["revision"], row["is_current"], row["answer"], row["source_partition"], row["source_offset"])
        for row in rows
    ]
    newest = max(one.newest for one in revisions)
    return found == [
        (number, one.newest == newest, _content(one)[1], *one.place) for number, one in enumerate(revisions, start=1)
    ]


def check_verdicts(
    findings: Findings, interactions: Rows, verdicts: Rows, sentences: Rows, attributions: Rows, expected: Expectation
) -> None:
    """Every content has one verdict, with the sentences and numbers that the scorer must have given."""
    by_interaction = Counter(row["interaction_pk"] for row in verdicts)
    names = {row["id"]: f"{row['interaction_id']}/{row['revision']}" for row in interactions}
    findings.lost += findings.add("contents without a verdict", [names[pk] for pk in names.keys() - by_interaction])
    twice = [names.get(pk, str(pk)) for pk, n in by_interaction.items() if n > 1]
    findings.doubled += findings.add("contents with two verdicts", twice)
    revisions = {
        f"{name}/{number}": one for name, all_ in expected.revisions.items() for number, one in enumerate(all_, start=1)
    }
    listed: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for row in sentences:
        listed[row["verdict_id"]].append(row)
    chunks = {row["verdict_id"]: row["n"] for row in attributions}
    checked = [(names.get(row["interaction_pk"], ""), row) for row in verdicts]
    wrong = [
        name
        for name, row in checked
        if name in revisions and not _is_judged(row, listed[row["id"]], chunks.get(row["id"], 0), revisions[name])
    ]
    findings.add("verdicts with other numbers than the scorer gave", wrong)


def _is_judged(verdict: Mapping[str, Any], rows: Rows, chunks: int, revision: Revision) -> bool:
    exchange = revision.message.exchange
    assert exchange is not None
    wanted = bool(verdict["wants_attribution"])
    found = grounding(exchange, Method.LEAVE_ONE_OUT if wanted else Method.TWO_PASS)
    return (
        (verdict["lowest_score"], verdict["skip_reason"], verdict["attributed"])
        == (found.lowest_gap, found.skip_reason, wanted)
        and chunks == sum(len(sentence.drops) for sentence in found.sentences)
        and [tuple(row.values())[1:] for row in rows] == list(_sentences(found))
    )


def _sentences(found: AnswerGrounding) -> Iterator[tuple[object, ...]]:
    """Rows as SENTENCES has them, without the verdict."""
    for one in found.sentences:
        support = _support(one, found)[:6] if one.drops else (None,) * 6
        yield (
            one.index,
            one.sentence.start,
            one.sentence.end,
            one.n_tokens,
            one.gap,
            one.gap,
            one.jsd_no_context,
            one.surprisal,
            one.skip_reason,
            *support,
        )


def check_letters(findings: Findings, letters: Iterable[Record], expected: Expectation, *, disturbed: bool) -> None:
    """Every poison is in the dead-letter topic as it was sent; more than once only if something was disturbed."""
    found: Counter[Place] = Counter()
    altered: list[Place] = []
    for letter in letters:
        facts = DeadLetter.from_headers(letter.headers)
        place = (facts.partition, facts.offset)
        found[place] += 1
        if place in expected.poison and not _is_letter_of(letter, facts, expected.poison[place], expected):
            altered.append(place)
    settled = expected.poison.keys() & expected.outcomes.keys()
    findings.lost += findings.add("poison without a dead letter", sorted(settled - found.keys()))
    findings.add("dead letters of messages that are none", sorted(found.keys() - expected.poison.keys()))
    findings.add("dead letters that are not as they were sent", altered)
    findings.letter_repeats = sum(found.values()) - len(found)
    if findings.letter_repeats and not disturbed:
        findings.wrong.append(f"dead letters were repeated though nothing was disturbed: {findings.letter_repeats}")


def _is_letter_of(letter: Record, facts: DeadLetter, record: Record, expected: Expectation) -> bool:
    whole = record.value is not None and record.size <= MAX_MESSAGE_BYTES
    return (
        facts.reason == expected.outcomes.get((record.partition, record.offset), facts.reason)
        and facts.value_attached == whole
        and letter.value == (record.value if whole else None)
        and letter.key == record.key
        and original_headers(letter.headers) == record.headers
    )


def check_tasks(
    findings: Findings, records: Sequence[Record], tasks: Rows, interactions: Rows, lost: Collection[str] = ()
) -> None:
    """Every task is of a verdict and was told under its own event id; a frozen relay may have told one twice.

    ``lost`` are the events of a database in whose place a backup was put. Who is asked about is drawn anew then, so
    one that was told may not be there any more. But an answer has one task, whoever drew it, and is still there.
    """
    told = Counter(dict(record.headers).get("event-id") or b"" for record in records)
    answers: dict[tuple[str, int], set[str]] = defaultdict(set)
    for record in records:
        task = json.loads(record.value or b"{}")
        answers[task["interaction_id"], task["revision"]].add(task["task_id"])
    stored = {(row["interaction_id"], row["revision"]) for row in interactions}
    findings.doubled += findings.add("answers told under two task ids", [at for at, n in answers.items() if len(n) > 1])
    findings.add("told tasks of an answer that is not stored", sorted(answers.keys() - stored))
    events = [(row["event_id"] or "").encode() for row in tasks]
    findings.tasks = len(events)
    findings.task_repeats = sum(told.values()) - len(told)
    findings.lost += findings.add("review tasks that were not told", [one for one in events if one not in told])
    orphans = told.keys() - set(events)
    findings.add("events of no review task", sorted(orphans - {one.encode() for one in lost}))
    findings.tasks_not_chosen_again = len(orphans)
    findings.add("review tasks told but not settled", [row["event_id"] for row in tasks if row["state"] != "done"])
    findings.add("review tasks without a verdict", [row["event_id"] for row in tasks if not row["judged"]])


def check_history(findings: Findings, steps: Sequence[Step], ends: Mapping[int, int]) -> None:
    """Each partition went from 0 to its end without a gap or a step back, by one owner in each generation."""
    position: dict[int, int] = defaultdict(int)
    owners: dict[tuple[int, int], set[str]] = defaultdict(set)
    gaps, back = [], []
    for step in steps:
        if step.to_offset < step.from_offset:
            back.append(step)
        if step.from_offset != position[step.partition]:
            gaps.append(step)
        position[step.partition] = step.to_offset
        if step.to_offset != step.from_offset:
            owners[step.partition, step.generation].add(step.owner)
    findings.regressions += findings.add("steps back", back)
    findings.add("steps that do not begin where the last one ended", gaps)
    findings.add("generations with two owners of a partition", [at for at, all_ in owners.items() if len(all_) > 1])
    short = [f"{one} at {position[one]} of {end}" for one, end in ends.items() if position[one] != end]
    findings.add("partitions that do not stand at their end", short)


def check_lag(findings: Findings, lags: Rows, committed: Mapping[int, int | None], ends: Mapping[int, int]) -> None:
    """Nothing waits, by the books and by Kafka's own tools, though no partition ends in a record."""
    behind = [f"{row['partition']}: {row['lag']}" for row in lags if row["lag"] != 0]
    findings.add("partitions with a lag in v_ingest_lag", behind)
    findings.add("partitions that are not in v_ingest_lag", sorted(ends.keys() - {row["partition"] for row in lags}))
    short = [f"{one} at {committed.get(one)} of {end}" for one, end in ends.items() if committed.get(one) != end]
    findings.add("partitions with a lag by the group's committed offsets", short)


def check_jobs(findings: Findings, runs: Rows, skewed: Sequence[str]) -> None:
    """No due time was entered before it had come, by a worker whose clock is ahead either."""
    early = [f"{row['job']} for {row['scheduled_for']}" for row in runs if row["scheduled_for"] > row["started_at"]]
    findings.add("jobs that were run before they were due", early)
    findings.runs = len(runs)
    findings.runs_of_skewed = sum(str(row["owner"]).startswith(tuple(skewed)) for row in runs)


def check_silence(findings: Findings, logs: Iterable[Path]) -> None:
    """No log has words of a message's text."""
    for log in logs:
        text = log.read_text("utf-8", "replace")
        findings.add(f"message text in {log.name}", [fragment for fragment in FRAGMENTS if fragment in text])
