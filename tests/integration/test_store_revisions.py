from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from tests.integration.store_examples import scored
from worker.rules.verdict import Threshold
from worker.store.revisions import ContentKey, StoredRevision, keyed, plan_revisions

THRESHOLD = Threshold(1, None, 1, 0.1, 0.5, "seeded", datetime(2026, 1, 1, tzinfo=UTC))
# What arrives: an interaction and one of its editions.
ARRIVALS = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["one ", "two ", "three "])), max_size=12)


def _apply(arrivals: list[tuple[str, str]], stored: dict[ContentKey, StoredRevision]) -> list[bool]:
    """Carry a plan out on a dictionary, as the database would; say of each arrival whether it was a duplicate."""
    batch = [keyed(scored(n, name, [0.9], THRESHOLD, edition=edition)) for n, (name, edition) in enumerate(arrivals)]
    plan = plan_revisions(batch, dict(stored))
    for key, old in stored.items():
        stored[key] = replace(old, is_current=old.is_current and old.pk not in plan.superseded)
    for key, new in plan.added.items():
        stored[key] = StoredRevision(len(stored), new.revision, new.is_current, has_verdict=True)
    return [position in plan.duplicates for position in range(len(batch))]


@given(arrivals=ARRIVALS, cut=st.integers(0, 12))
def test_a_stream_leaves_the_same_revisions_wherever_it_is_cut_into_batches(
    arrivals: list[tuple[str, str]], cut: int
) -> None:
    whole: dict[ContentKey, StoredRevision] = {}
    duplicates = _apply(arrivals, whole)
    halves: dict[ContentKey, StoredRevision] = {}
    assert _apply(arrivals[:cut], halves) + _apply(arrivals[cut:], halves) == duplicates
    assert halves == whole


@given(arrivals=ARRIVALS)
def test_revisions_count_the_contents_of_an_interaction_and_the_newest_is_current(
    arrivals: list[tuple[str, str]],
) -> None:
    stored: dict[ContentKey, StoredRevision] = {}
    duplicates = _apply(arrivals, stored)
    assert [arrival in arrivals[:position] for position, arrival in enumerate(arrivals)] == duplicates
    for name in {name for name, _ in arrivals}:
        found = sorted((old.revision, old.is_current) for key, old in stored.items() if key[1] == name)
        editions = len({edition for other, edition in arrivals if other == name})
        assert found == [(number, number == editions) for number in range(1, editions + 1)]
