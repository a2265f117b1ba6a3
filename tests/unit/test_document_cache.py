"""Documents that were looked up lately are not fetched again before their time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from worker.documents import cache
from worker.documents.cache import IDS_AT_ONCE, KEEP_MISSING_S, KEEP_S, CachedDocuments


class Shelf:
    """Where the documents are; ``asked`` are the ids of each fetch."""

    def __init__(self, **texts: str) -> None:
        self.texts = texts
        self.asked: list[list[str]] = []
        self.now = 0.0
        self.documents = CachedDocuments(self.fetch, lambda: self.now)

    def fetch(self, ids: Sequence[str]) -> Mapping[str, str]:
        self.asked.append(list(ids))
        return {one: self.texts[one] for one in ids if one in self.texts}


def test_each_document_is_fetched_once_for_all_who_name_it() -> None:
    shelf = Shelf(a="A", b="B")
    assert shelf.documents.texts(["a", "a", "gone"]) == {"a": "A"}
    assert shelf.documents.texts(["b", "a", "gone"]) == {"a": "A", "b": "B"}
    assert shelf.asked == [["a", "gone"], ["b"]]


def test_a_change_is_noticed_in_time_and_what_was_missing_sooner() -> None:
    shelf = Shelf(a="A")
    shelf.documents.texts(["a", "b"])
    shelf.texts = {"a": "new", "b": "B"}
    shelf.now = KEEP_MISSING_S
    assert shelf.documents.texts(["a", "b"]) == {"a": "A", "b": "B"}
    shelf.now = KEEP_S
    assert shelf.documents.texts(["a"]) == {"a": "new"}


def test_many_ids_are_fetched_in_portions() -> None:
    shelf = Shelf()
    ids = [str(number) for number in range(2 * IDS_AT_ONCE + 1)]
    assert shelf.documents.texts(ids) == {}
    assert [len(asked) for asked in shelf.asked] == [IDS_AT_ONCE, IDS_AT_ONCE, 1]


def test_the_oldest_are_forgotten_when_they_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_CHARS", 10)
    shelf = Shelf(a="1234", b="1234", c="1234")
    for one in ("a", "b", "a", "c", "a", "b"):
        assert shelf.documents.texts([one]) == {one: "1234"}
    assert shelf.asked == [["a"], ["b"], ["c"], ["b"]]


def test_more_than_is_kept_is_still_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRIES", 1)
    shelf = Shelf(a="A", b="B", c="C")
    assert shelf.documents.texts(["a", "b", "c"]) == {"a": "A", "b": "B", "c": "C"}


def test_what_a_fetch_raises_is_raised_and_nothing_is_remembered() -> None:
    shelf = Shelf(a="A")
    texts, shelf.texts = shelf.texts, None  # type: ignore[assignment] # away
    with pytest.raises(TypeError):
        shelf.documents.texts(["a"])
    shelf.texts = texts
    assert shelf.documents.texts(["a"]) == {"a": "A"}
