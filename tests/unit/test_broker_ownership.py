"""The notes on partitions, against a model that applies what was reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from worker.broker.rebalance import Ownership, Rebalance

PARTITIONS = st.frozensets(st.integers(0, 3))
STEPS = st.lists(st.tuples(st.sampled_from(["gain", "lose", "take"]), PARTITIONS), max_size=30)


def test_an_assigned_partition_is_named_until_it_is_placed() -> None:
    ownership = Ownership()
    ownership.gain({0, 1})
    assert ownership.take() == Rebalance(assigned=frozenset({0, 1}))
    ownership.place(0)
    assert ownership.take() == Rebalance(assigned=frozenset({1}))
    ownership.place(1)
    assert ownership.take() == Rebalance()


def test_a_partition_that_went_and_came_back_is_in_both() -> None:
    ownership = Ownership()
    ownership.gain({0})
    ownership.take()
    ownership.place(0)
    ownership.lose({0})
    ownership.gain({0})
    assert ownership.take() == Rebalance(assigned=frozenset({0}), revoked=frozenset({0}))
    assert ownership.take() == Rebalance(assigned=frozenset({0}))


def test_a_partition_that_came_and_went_unseen_is_only_revoked() -> None:
    ownership = Ownership()
    ownership.gain({0})
    ownership.lose({0})
    assert ownership.take() == Rebalance(revoked=frozenset({0}))


@given(STEPS)
def test_a_caller_that_follows_the_reports_ends_with_what_is_owned(steps: list[tuple[str, frozenset[int]]]) -> None:
    ownership, owned, placed = Ownership(), set[int](), set[int]()
    for step, partitions in [*steps, ("take", frozenset())]:
        if step == "gain":
            ownership.gain(partitions - owned)
            owned |= partitions
        elif step == "lose":
            ownership.lose(partitions & owned)
            owned -= partitions
        else:
            change = ownership.take()
            placed = placed - change.revoked | change.assigned
            for partition in change.assigned:
                ownership.place(partition)
    assert placed == owned
