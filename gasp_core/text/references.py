"""What in a text says where it stands, and nothing of its subject: list markers, citations, references to passages.

``3.`` before a list item, ``[1]``, ``[doc2]``, ``【4:0†x】``, ``<sup>1</sup>``, where a link leads to,
``(Source: doc 3)``, ``According to Passage 2``, ``laut Dokument 3``. Their numbers and capitals are no numbers and
names of the answer.

Every repetition is bounded, so that a search takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# What an answer calls what it was handed. An article, a section or a table may well belong to the subject.
_HANDED = (
    r"(?:passages?|documents?|docs?|sources?|contexts?|excerpts?|snippets?|chunks?|references?|refs?|search results?"
    r"|passagen?|dokumente?n?|quellen?|kontexte?s?|auszug|extraits?|pasajes?|documentos?|fuentes?|contextos?|fragmentos?"
    r"|passagg[io]|brano|brani|document[oi]|font[ei]|contest[oi]|passage[nm]s?|trechos?|fontes|bronn?en|bron)"
)
_HANDED_UNSPACED = "(?:文書|資料|文章|情報源|出典|パッセージ|ドキュメント|文档|文件|段落|资料|来源|參考|参考)"
_HANDED_HINDI = "(?:अनुच्छेद|दस्तावेज़?|स्रोत|संदर्भ|परिच्छेद)"
_NUMBER = r"(?:(?:no\.?|nr\.?|number|n°|#)\s?)?\d{1,3}"
# As in German dates: "3. Oktober" begins no list item.
_MONTH = r"(?:januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)\b"
_NUMBERS = rf"{_NUMBER}(?:\s?(?:,|;|&|and|und|et|y|e|en|और|と|和|、|-|–|to|bis)\s?{_NUMBER}){{0,9}}(?![\w%]|[.,]\d)"
_UNSPACED_NUMBERS = r"\d{1,3}(?:\s?[,、，和とー-]\s?\d{1,3}){0,9}(?![\d.%])"
_ARTICLE = r"\b(?:(?:the|this|these|der|die|den|dem|das|le|la|les|el|los|las|il|i|gli|o|os|a|as|de|het)\s)?"
_GIVEN = r"(?:(?:given|provided|supplied|retrieved|above|following|angegebenen|bereitgestellten|vorliegenden)\s)?"
# In languages that say it behind the noun.
_GIVEN_BEHIND = (
    r"(?:\s(?:fournie?s?|donnée?s?|proporcionad[oa]s?|facilitad[oa]s?|dad[oa]s?|fornit[aeio]|fornecid[oa]s?|provided"
    r"|given|supplied|above)\b)?"
)
_BY = (
    r"(?:(?:solely |only )?based (?:solely |only )?(?:up)?on|according to|as (?:mentioned|stated|described|noted) in"
    r"|laut|gemäß|nach|selon|d['’]après|según|de acuerdo con|secondo|segundo|de acordo com|volgens)"
)

_SEE = r"(?:see|cf\.?|from|per|as per|in|siehe|vgl\.?|aus|voir|d['’]après|véase|ver|de|vedi|da|zie|参照|见|参见)"
# A marker marks something: "9." alone is a number.
_SIGN = r"[-+•◦▪●‣·–—]|\*|\(?\d{1,3}[.)]|\(?[a-z]\)|(?-i:[a-z]\.)"
_MARKER = rf"^[ \t]{{0,12}}[*_]{{0,3}}(?:(?:{_SIGN})[*_]{{0,3}}\s{{1,3}}(?=\S)(?!{_MONTH})|\d{{1,3}}[、．])"
# Parentheses within an address are in pairs.
_ADDRESS = r"\((?:[^()\s]|\([^()\s]{0,80}\)){1,500}\)"
_BRACKETS = (
    r"【[^【】\n]{1,80}】",
    r"<sup>(?:<a\s[^<>\n]{0,200}>)?[^<>\n]{1,40}(?:</a>)?</sup>",
    rf"\[\^?\d{{1,3}}(?:\s?[,;–-]\s?\^?\d{{1,3}}){{0,19}}\](?:{_ADDRESS})?",
    rf"\[{_HANDED}[\s_:-]?\d{{1,4}}(?:\s?[,;]\s?(?:{_HANDED}[\s_:-]?)?\d{{1,4}}){{0,9}}\]",
    rf"\[{_HANDED}\s?:[^\[\]\n]{{1,60}}\]",
    rf"(?<=\])(?=\((?:https?://|www\.|mailto:|/|#)){_ADDRESS}",
    rf"[(（]\s?(?:{_SEE}\s)?(?:{_ARTICLE}{_HANDED}\b|{_HANDED_UNSPACED}|{_HANDED_HINDI})[^()（）\n]{{0,60}}[)）]",
)
_CITATION = re.compile("|".join(_BRACKETS), re.IGNORECASE)
_NAMED = (
    rf"(?:\b{_BY}\s)?{_ARTICLE}{_GIVEN}\b{_HANDED}\s?{_NUMBERS}(?:,|\b)",
    rf"\b{_BY}\s{_ARTICLE}{_GIVEN}{_HANDED}\b{_GIVEN_BEHIND},?",
    rf"(?:根据|依据)?{_HANDED_UNSPACED}\s?{_UNSPACED_NUMBERS}(?:によると|によれば|では|中)?",
    rf"{_HANDED_HINDI}\s?{_NUMBERS}(?:\sके अनुसार)?",
)
_REFERENCE = re.compile("|".join((_MARKER, *_BRACKETS, *_NAMED)), re.IGNORECASE | re.MULTILINE)
# Most sentences have none of these, so that nothing further has to be looked for.
_FIRST = re.compile(_MARKER, re.IGNORECASE | re.MULTILINE)
_OPENERS = "[(（【<"
_HINTS = (
    *("passa", "pasa", "doc", "dok", "source", "context", "kontext", "contest", "excerpt", "snippet", "chunk", "ref"),
    *("search result", "quelle", "auszug", "extrait", "fuente", "fragment", "bran", "font", "trecho", "bron"),
    *("文", "資料", "情報源", "出典", "パッセージ", "ドキュメント", "段落", "资料", "来源", "參考", "参考"),
    *("अनुच्छेद", "दस्तावे", "स्रोत", "संदर्भ", "परिच्छेद"),
)


def references(text: str) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans ``(start, end)`` of list markers, citations and references to passages, in order."""
    if _may_have_any(text):
        for found in _REFERENCE.finditer(text):
            yield found.span()


def citations(text: str) -> Iterator[tuple[int, int]]:
    """Yield the half-open spans of the citations alone, in order: ``[1]``, ``(Passage 2)``, where a link leads to."""
    if any(opener in text for opener in _OPENERS):
        for found in _CITATION.finditer(text):
            yield found.span()


def without_references(text: str) -> str:
    """The text with a blank in place of each list marker, citation and reference to a passage."""
    return _REFERENCE.sub(" ", text) if _may_have_any(text) else text


def _may_have_any(text: str) -> bool:
    if any(opener in text for opener in _OPENERS) or _FIRST.search(text):
        return True
    folded = text.casefold()
    return any(hint in folded for hint in _HINTS)
