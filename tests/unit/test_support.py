"""Which chunks support a sentence, by what it loses without them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pytest

from gasp_core.grounding import Chunk, ChunkDrop, Sentence, SentenceGrounding, UnitKind
from gasp_core.support import LARGE_GAP_NATS, Drops, Removal, Support, contradicting_chunk, missing_removals, support_of
from gasp_core.support_search import MOST_GROUPS, MOST_PER_GROUP, SupportSearch, with_rest_together

GAP = 1.9


def drop_of(removed: Iterable[int], given: Sequence[float]) -> float:
    """What a sentence loses whose chunks by themselves give these shares of its gap, one in the stead of another."""
    out = set(removed)
    return GAP * (1 - max((share for group, share in enumerate(given) if group not in out), default=0.0))


def searched(given: Sequence[float]) -> tuple[Support, int]:
    """The support of such a sentence, and for how many removals more than each group alone was asked."""
    groups = tuple(range(len(given)))
    drops: dict[Removal, float] = {(group,): drop_of((group,), given) for group in groups} | {groups: GAP}
    known = len(drops)
    while missing := missing_removals(GAP, groups, drops):
        drops |= {removal: drop_of(removal, given) for removal in missing}
    return support_of(GAP, groups, drops), len(drops) - known


@pytest.mark.parametrize(
    ("given", "supporting"),
    [
        ([0.0, 1.0, 0.0, 0.1], (1,)),
        ([0.0, 1.0, 0.0, 1.0], (1, 3)),
        ([1.0, 1.0], (0, 1)),
        ([1.0, 1.0, 1.0], (0, 1, 2)),
        ([0.9, 0.1, 0.8, 0.2, 1.0, 0.0], (0, 2, 4)),
        # A chunk of the same subject gives a part, and is no stand-in.
        ([1.0, 0.95, 0.4, 0.4, 0.1], (0, 1)),
        ([1.0] * 9 + [0.4] * 4, tuple(range(9))),
    ],
)
def test_chunks_that_stand_in_for_each_other_are_found_together(
    given: list[float], supporting: tuple[int, ...]
) -> None:
    support, asked = searched(given)
    assert (support.groups, support.unlocated) == (supporting, False)
    assert support.drop >= GAP / 2
    assert asked <= (0 if len(supporting) == 1 else len(given) + len(given).bit_length())


GROUPS = (0, 1, 2, 3)
ALONE: dict[Removal, float] = {(1, 2, 3): 1.8, (0, 2, 3): 1.8, (0, 1, 3): 1.8, (0, 1, 2): 1.8}


def drops_of(*single: float) -> dict[Removal, float]:
    return {(group,): drop for group, drop in enumerate(single)} | {GROUPS: GAP}


def test_a_gap_that_no_few_chunks_explain_names_none() -> None:
    drops = drops_of(0.08, 0.02, 0.03, 0.01) | ALONE
    assert missing_removals(GAP, GROUPS, drops) == ()
    assert support_of(GAP, GROUPS, drops) == Support((), 0.08, unlocated=True)


def test_a_chunk_that_explains_a_part_of_the_gap_is_named_where_nothing_explains_more() -> None:
    assert support_of(GAP, GROUPS, drops_of(0.08, 0.6, 0.03, 0.01) | ALONE) == Support((1,), 0.6)


def test_a_small_gap_has_the_chunk_that_it_reacts_to_or_none() -> None:
    small = LARGE_GAP_NATS - 0.01
    for drops, expected in (
        (drops_of(0.01, 0.06, -0.4, 0.06), Support((1,), 0.06)),
        (drops_of(0.01, 0.04, -0.4, 0.0), Support((), 0.04)),
    ):
        assert missing_removals(small, GROUPS, drops) == ()
        assert support_of(small, GROUPS, drops) == expected


def test_a_gap_that_one_chunk_explains_costs_no_further_prompt() -> None:
    drops = drops_of(0.1, 1.2, 0.0, 0.0)
    assert missing_removals(GAP, GROUPS, drops) == ()
    assert support_of(GAP, GROUPS, drops) == Support((1,), 1.2)


def test_what_supports_a_sentence_does_not_contradict_it() -> None:
    drops = [ChunkDrop(0, 0.02, 0.0), ChunkDrop(1, -0.4, 0.1), ChunkDrop(2, -0.5, 0.1), ChunkDrop(3, 0.3, 0.1)]
    assert contradicting_chunk(drops) == 2
    assert contradicting_chunk(drops, supporting=(2, 3)) == 1
    assert contradicting_chunk([ChunkDrop(0, -0.01, 0.0)]) is None


def sentence(index: int, drops: Sequence[float], gap: float = GAP, window: int = 0) -> SentenceGrounding:
    own = tuple(ChunkDrop(chunk, drop, 0.1) for chunk, drop in enumerate(drops))
    return SentenceGrounding(index, Sentence(0, 9, UnitKind.PROSE), 4, gap, 0.3, 1.0, drops=own, window=window)


def test_a_copy_in_the_same_group_is_a_member_and_the_first_of_equals_stands_for_all() -> None:
    chunks = [Chunk(passage, 0, 9, group) for passage, group in enumerate((0, 1, 0))]
    (found,) = SupportSearch([sentence(0, [1.5, 0.1, 1.5])], chunks, [(0, 1)]).sentences()
    assert (found.supporting_chunk, found.supporting_chunks, found.supporting_drop) == (0, (0, 2), 1.5)


def test_the_member_with_the_largest_drop_stands_for_the_others() -> None:
    chunks = [Chunk(passage, 0, 9, passage) for passage in range(2)]
    (found,) = SupportSearch([sentence(0, [-0.2, 0.1])], chunks, [(0, 1)]).sentences()
    assert (found.supporting_chunk, found.supporting_chunks, found.supporting_drop) == (1, (0, 1), GAP)
    assert (found.contradicting_chunk, found.unlocated) == (None, False)


def drops_by_sentence(given: Sequence[Sequence[float]], removals: Sequence[Removal], at: int) -> Drops:
    return {removal: drop_of(removal, given[at]) for removal in removals}


def test_what_lies_behind_the_first_groups_is_one_group_of_which_none_is_named() -> None:
    chunks = with_rest_together([Chunk(passage, 0, 9, passage) for passage in range(MOST_GROUPS + 9)])
    groups = tuple(range(MOST_GROUPS + 1))
    assert [chunk.group for chunk in chunks] == [*groups, *[MOST_GROUPS] * 8]
    drops = [GAP if chunk.group == MOST_GROUPS else 0.0 for chunk in chunks]
    (found,) = SupportSearch([sentence(0, drops)], chunks, [groups]).sentences()
    assert (found.supporting_chunk, found.supporting_chunks) == (None, ())
    assert (found.supporting_drop, found.unlocated) == (GAP, True)


@pytest.mark.parametrize("n_sentences", [1, 30, 1_000])
def test_the_prompts_of_a_window_are_bounded_whatever_its_sentences_ask_for(n_sentences: int) -> None:
    n_groups = 20
    chunks = [Chunk(passage, 0, 9, passage) for passage in range(n_groups)]
    groups = tuple(range(n_groups))
    given = [
        [1.0 if group in {at % n_groups, at // n_groups % n_groups} else 0.3 for group in groups]
        for at in range(1, n_sentences + 1)
    ]
    search = SupportSearch([sentence(at, [0.0] * n_groups) for at in range(n_sentences)], chunks, [groups])
    asked = 0
    while any(wanted := search.wanted()):
        asked += len(wanted[0])
        search.learn(0, partial(drops_by_sentence, given, wanted[0]))
    assert asked <= MOST_PER_GROUP * n_groups
    # Of those that nothing was left for, none is named.
    assert all(one.supporting_chunks or one.unlocated for one in search.sentences())
    assert any(len(one.supporting_chunks) >= 2 for one in search.sentences())
