"""Which chunks say nearly the same, and what it costs to find out."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence

import pytest

from gasp_core.grounding import Passage
from gasp_core.text.chunks import context_chunks

SEED = 7


def grouped(texts: Sequence[str]) -> list[int]:
    """The groups of passages with these texts."""
    return [chunk.group for chunk in context_chunks([Passage(str(n), text) for n, text in enumerate(texts)], 5)]


def steps_for(texts: Sequence[str]) -> int:
    """How many calls, and steps of generators, of Python it takes to group the texts."""
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        grouped(texts)
    finally:
        sys.setprofile(None)
    return steps


def with_shared_half(number: int, words: int = 60) -> list[str]:
    """Texts whose second half is the same in all of them."""
    shared = " ".join(f"clause{word}" for word in range(words // 2))
    return [" ".join(f"own{one}x{word}" for word in range(words // 2)) + " " + shared for one in range(number)]


def of_common_parts(number: int, parts: int = 12) -> list[str]:
    """Texts that are each put together from half of the same parts."""
    draw = random.Random(SEED)
    part_texts = [" ".join(f"part{part}x{word}" for word in range(10)) for part in range(parts)]
    return [" ".join(draw.sample(part_texts, parts // 2)) for _ in range(number)]


def changed(text: str, words: int, draw: random.Random) -> str:
    """The text with some of its words replaced."""
    out = text.split()
    for at in draw.sample(range(len(out)), words):
        out[at] = f"changed{draw.random()}"
    return " ".join(out)


def by_comparing_all(texts: Sequence[str]) -> list[int]:
    """The groups by the definition: each text against the first of each group."""
    firsts: list[set[tuple[str, ...]]] = []
    found = []
    for text in texts:
        words = text.split()
        runs = {tuple(words[at : at + 3]) for at in range(len(words) - 2)}
        near = [
            group
            for group, first in enumerate(firsts)
            if runs and len(runs & first) >= 0.8 * (len(runs) + len(first) - len(runs & first))
        ]
        if not near:
            firsts.append(runs)
        found.append(near[0] if near else len(firsts) - 1)
    return found


@pytest.mark.parametrize("texts", [with_shared_half, of_common_parts])
def test_twice_the_passages_take_about_twice_the_steps_whatever_they_share(
    texts: Callable[[int], list[str]],
) -> None:
    few, many = steps_for(texts(150)), steps_for(texts(300))
    assert many < 2.5 * few


def test_a_thousand_passages_that_share_half_of_their_text_are_groups_of_their_own() -> None:
    texts = with_shared_half(1_000)
    copy = changed(texts[700], 1, random.Random(SEED))
    assert grouped([*texts, copy]) == [*range(1_000), 700]


@pytest.mark.parametrize("seed", range(20))
def test_the_groups_are_those_of_comparing_every_text_with_every_group(seed: int) -> None:
    draw = random.Random(seed)
    texts = [" ".join(f"w{draw.randrange(300)}" for _ in range(draw.randrange(4, 60))) for _ in range(12)]
    for _ in range(40):
        text = draw.choice(texts)
        texts.append(changed(text, min(draw.randrange(4), len(text.split())), draw))
    assert grouped(texts) == by_comparing_all(texts)
