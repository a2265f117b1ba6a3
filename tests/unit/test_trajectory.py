"""What is measured of a path through states: by hand, and what holds for any."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gasp_core.arrays import Floats
from gasp_core.attractor.growth import MAX_STEPS, growing
from gasp_core.attractor.trajectory import Trajectory

# Paths of 1 to 8 steps among states of width 5, some of whose steps may be 0.
PATHS = (
    st.integers(2, 9)
    .flatmap(lambda count: arrays(np.float64, (count, 5), elements=st.integers(-20, 20).map(lambda number: number / 4)))
    .filter(lambda path: np.linalg.norm(path[-1]) > 0)
)


def trajectory(path: Floats) -> Trajectory:
    steps = np.diff(path, axis=0)
    return Trajectory(float(np.linalg.norm(path[-1])), steps @ steps.T)


def along(*states: tuple[float, ...]) -> Trajectory:
    return trajectory(np.array(states))


def test_a_straight_line_has_one_dimension_and_steps_of_one_length_do_not_converge() -> None:
    line = along((2, 0), (4, 0), (6, 0), (8, 0))
    assert (line.movement, line.convergence, line.dimension) == pytest.approx((6 / 8, 0, 1))


def test_steps_of_one_length_at_right_angles_have_a_dimension_each() -> None:
    corners = along((0, 0, 0), (3, 0, 0), (3, 3, 0), (3, 3, 3))
    assert (corners.movement, corners.convergence, corners.dimension) == pytest.approx((3**0.5, 0, 3))


def test_a_way_back_and_forth_moves_although_it_ends_where_it_began() -> None:
    there_and_back = along((1, 0), (2, 0), (1, 0))
    assert (there_and_back.movement, there_and_back.dimension) == pytest.approx((2, 1))


def test_shrinking_steps_converge_and_growing_ones_do_the_opposite() -> None:
    assert along((0, 0), (6, 0), (8, 0)).convergence == pytest.approx((6 - 2) / (6 + 2))
    assert along((0, 0), (2, 0), (8, 0)).convergence == pytest.approx((2 - 6) / (2 + 6))
    assert along((0, 0), (6, 0), (6, 0)).convergence == 1
    assert along((6, 0), (6, 0), (8, 0)).convergence == -1


def test_a_single_step_is_a_line_that_neither_converges_nor_diverges() -> None:
    single = along((0, 3), (4, 3))
    assert (single.movement, single.convergence, single.dimension) == pytest.approx((4 / 5, 0, 1))


def test_a_path_that_stands_still_is_zero_in_all() -> None:
    still = along((1, 2), (1, 2), (1, 2))
    assert (still.movement, still.convergence, still.dimension) == (0, 0, 0)


@given(PATHS)
def test_the_numbers_keep_within_their_bounds(path: Floats) -> None:
    found = trajectory(path)
    direct = np.linalg.norm(path[-1] - path[0]) / np.linalg.norm(path[-1])
    assert direct - 1e-9 <= found.movement
    assert -1 <= found.convergence <= 1
    if found.movement > 0:
        assert 1 - 1e-9 <= found.dimension <= min(len(path) - 1, 5) + 1e-9


@given(PATHS, st.sampled_from([1e-120, 1e-3, 7.0, 1e90]))
def test_neither_the_unit_of_the_states_nor_their_axes_matter(path: Floats, unit: float) -> None:
    turned = np.linalg.qr(np.arange(25.0).reshape(5, 5) ** 1.5 + np.eye(5))[0]
    found, other = trajectory(path), trajectory(path @ turned * unit)
    assert (other.movement, other.dimension) == pytest.approx((found.movement, found.dimension), rel=1e-6, abs=1e-6)
    assert other.convergence == pytest.approx(found.convergence, abs=1e-6)


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=100, unique=True).map(sorted))
def test_contexts_grow_from_none_to_all_in_order_by_steps_of_nearly_one_size(groups: list[int]) -> None:
    lacking = [tuple(groups), *growing(groups), ()]
    assert len(lacking) - 1 == min(len(groups), MAX_STEPS)
    assert all(one == tuple(groups[len(groups) - len(one) :]) for one in lacking)
    sizes = [len(before) - len(after) for before, after in pairwise(lacking)]
    assert min(sizes) >= 1
    assert max(sizes) - min(sizes) <= 1
