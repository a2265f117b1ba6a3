"""Full stops that end no sentence: of abbreviations, of titles before a name, of ordinals ("am 3. Oktober").

Kept by how they behave, not by language, because a text of several languages has those of all.
"""

from __future__ import annotations

import re
from functools import cache

from gasp_core.text.grammar_words import GRAMMAR_WORDS

_LOOK_BACK = 32  # characters; no abbreviation is longer

# What follows these goes with them, whatever it is.
_LEADS_ON = (
    r"e\.g|i\.e|cf|vs|viz|messrs|gen|rev|hon|capt|lt|sgt|col"
    r"|z\. ?b|d\. ?h|u\. ?a|o\. ?ä|v\. ?a|bzw|vgl|ggf|evtl|inkl|exkl|zzgl|abzgl|sog|bspw|insb|einschl"
    r"|frl|dipl|nr|p\. ?ex|c\.-à-d|mme|mlle|mgr|p\. ?ej|sr|sra|srta|dra|dña|ud|uds|ee|sig|dott|avv|p\. ?es"
    r"|bijv|dhr|mevr|o\. ?a|d\. ?w\. ?z|डॉ|प्रो|श्री|पं|सं|क्र"
)
# These end no sentence before a number or a word in lower case.
_BEFORE_SMALL = (
    r"approx|est|max|min|avg|temp|vols?|arts?|figs?|eqs?|ch|chap|sect|refs?|nos|tel|ext|eds?|resp|incl|excl|ca|al"
    r"|usw|etc|abs|abb|tab|kap|ziff|rn|lit|anm|aufl|bd|hrsg|jh|str|tsd|mio|mrd|std|sek|lfd|pp?|s"
    r"|env|éd|av|apr|núms?|págs?|cap|ed|aprox|avda|art[íi]c|pagg?|blz|uu|no|sec|рис|стр|табл|г|रु|कि\.मी"
)
_ABBREVIATION = re.compile(
    rf"(?<![^\W\d_])(?:(?P<leads_on>{_LEADS_ON})|{_BEFORE_SMALL})\.[\"'”’)]{{0,2}}\s{{1,3}}$", re.IGNORECASE
)
# In German what counts stands before a noun with a capital, which may also be the first word of a sentence.
_COUNTS = re.compile(r"(?:\b(?:mio|mrd|tsd|jh|abs|abb|tab|kap|ziff|art|st)\.\s{1,3})$", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:^|[\s(§])(?P<before>[^\W\d_]{0,12})(?P<gap>\s{0,2})\d{1,3}\.\s{1,3}$")
_WORD = re.compile(r"[^\W\d_]+")
_MONTHS = frozenset(
    "januar jänner februar märz april mai juni juli august september oktober november dezember "  # noqa: SIM905 - words
    "januari februari maart juni juli augustus oktober december marts maj".split()
)
_COUNTED = frozenset(
    "jahrhundert jahrhunderts weltkrieg weltkriegs weltkrieges auflage klasse stock platz mal tag tages quartal "  # noqa: SIM905
    "semester kapitel woche monat absatz schritt runde etage geburtstag lebensjahr jahrestag spieltag".split()
)
# What stands before an ordinal in German; "I am 3. Bob is 5." has another "am".
_DETERMINERS = frozenset(
    "am im vom zum beim ab bis seit der die das den dem des ein eine einem einen einer eines jede jedem jeden jeder "  # noqa: SIM905
    "jedes ihr ihre ihrem ihren ihrer sein seine seinem seinen seiner".split()
)


def leads_on(body: str, start: int, end: int) -> bool:
    """Whether ``body[start:end]``, which ends in a full stop and blanks, goes on with what stands at ``end``.

    Looks at the last 32 characters. ``end`` lies within the text.
    """
    tail = body[max(start, end - _LOOK_BACK) : end]
    if found := _ABBREVIATION.search(tail):
        if found["leads_on"] is not None or not body[end].isupper():
            return True
        return _COUNTS.search(tail) is not None and not _may_begin(body, end)
    return _is_ordinal(tail, body, end)


def _is_ordinal(tail: str, body: str, end: int) -> bool:
    ordinal = _ORDINAL.search(tail)
    if ordinal is None:
        return False
    behind = _WORD.match(body, end, end + 40)
    if behind is None:
        return False
    word = behind.group()
    if word.casefold() in _MONTHS or word.casefold() in _COUNTED:
        return True
    before = ordinal["before"].casefold() if ordinal["gap"] else ""
    if word[0].islower():
        return bool(before)
    is_english = before == "am" and tail[: ordinal.start("before")].rstrip().endswith(("I", "i"))
    return before in _DETERMINERS and not is_english and not _may_begin(body, end)


def _may_begin(body: str, at: int) -> bool:
    """Whether the word at ``at`` is one of grammar, which has a capital only where a sentence begins."""
    word = _WORD.match(body, at, at + 40)
    return word is not None and word.group().casefold() in _grammar()


@cache
def _grammar() -> frozenset[str]:
    return frozenset(" ".join(GRAMMAR_WORDS[language] for language in ("de", "en", "nl")).split())
