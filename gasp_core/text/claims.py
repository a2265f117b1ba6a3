"""Sentences that claim nothing: they lead in, close, label what follows, or speak of the passages, not of the subject.

"Here is a summary:" and "To bake it, follow these steps:" announce, "I hope this helps!" closes, "The passages do not
say who won." tells what the material lacks. As soon as a sentence also says something about the subject it is a claim:
"Here is the answer: 42.", "The passages do not say who won, but it was a draw.", "The study does not mention side
effects." In doubt it is one, because what is taken for none is never scored.

English is here, the usual phrases of other languages in ``claims_abroad``. Every pattern is anchored, without a
repetition inside a repetition, and sees at most 300 characters.
"""

from __future__ import annotations

import re

from gasp_core.text.claims_abroad import ABROAD, OPENINGS_ABROAD
from gasp_core.text.markup import TAG
from gasp_core.text.references import without_references
from gasp_core.text.refusals import BASIS, GOES_ON, HANDED, NAMED, NOT, normalised, one_of

_SEEN = re.compile(r"[^\W_]")

# What may stand before: it says nothing by itself. "Yes" and "no" answer.
_OPENING = re.compile(
    one_of(
        r"(?:sure|certainly|of course|okay|ok|absolutely|alright|great|hello|hi|thanks|thank you)(?: thing"
        r"| there)?\b",
        r"(?:therefore|thus|so|in (?:short|summary|conclusion|addition|brief)|to (?:summarize|summarise|sum up"
        r"|conclude)"
        r"|overall|finally|lastly|additionally|furthermore|moreover|also|alternatively|however|unfortunately"
        r"|first|next"
        r"|then|again|otherwise|similarly)\b",
        r"(?:(?:please |do )?(?:also )?note that|(?:it is|it's) (?:also )?(?:important|worth) (?:to note"
        r"|noting) that)\b",
        r"(?:please )?note ?:|answer ?:|unable to answer(?: based on (?:the )?(?:given|provided) passages)? ?:",
        OPENINGS_ABROAD,
    )
    + r"[,!.:、 ]{0,3}"
)

# Leading in

_MODAL = r"(?:(?:you|we|one) (?:can|could|should|may|might|must|need to|will need to|have to) )?"
_GENTLY = r"(?:also |simply |please |just |either |try |consider )?"
_STEPS = (
    r"(?:steps?|instructions?|methods?|guidelines?|guide|tips|format|procedures?|process(?:es)?|directions?"
    r"|ingredients"
    r"|recipes?|options?|approach(?:es)?|ways?|rules?|formula|suggestions?|points?|precautions|techniques?)"
)
_ANSWER = (
    r"(?:answers?|summary|overview|response|explanation|breakdown|list|steps|instructions|guide|comparison|outline"
    r"|description|information|details|results?|example|recipe|quote|tips|points)"
)
_LEADING_IN = one_of(
    r"(?:here(?:'s| is| are)|below (?:is|are)|(?:the )?following (?:is|are)) [^:;,]{1,200}:$",
    rf"here(?:'s| is| are) (?:(?:my|the|your|an?|some) )?(?:[a-z-]{{2,20}} ){{0,2}}{_ANSWER}"
    r"(?: (?:to|for|of|based on|from) (?:the|your|this|these|that) [^:;,\d]{0,150})?$",
    r"here(?:'s| is| are) (?:my|the|an?) (?:[a-z-]{2,20} )?answer to (?:the|your) question \"[^\"]{0,200}$",
    rf"(?:(?:to|for|if|when|once|before|in order to)\b [^:;]{{1,150}}, )?{_MODAL}{_GENTLY}"
    rf"(?:follow|use|try|take|consider|do|see) (?:these|the following|this|one of (?:these|the following))"
    rf"(?: [a-z-]{{2,20}}){{0,2}} {_STEPS}\b[^:;,\d]{{0,80}}:$",
    r"(?:the|some|other|these|those|this|there|they|key|main|common|additional|possible|my|your|its"
    r"|their)\b[^:;,\d]{0,150}"
    r" (?:is|are|was|were|include|includes|including|follows|following|be|as)(?: the following| as follows)?:$",
    r"(?:the|my|your|this|these)\b[^:;,\d]{0,150} (?:is|are) as follows:?$",
)

# Labels of what follows. A label of the subject's own may be a claim in short.
_LABEL = (
    r"(?:(?:step|part|option|method|passages?|point|question|example|section|tip) \d{1,3}|summary|answer|note|notes"
    r"|overview|introduction|conclusion|ingredients|instructions|directions|method|preparation|steps|tips|example"
    r"|examples|sources?|references?|citations?|details|explanation|background|key (?:points|takeaways|facts)"
    r"|for example"
    r"|for instance|in (?:short|summary|conclusion|addition)|to (?:summarize|summarise|sum up|conclude)|additionally"
    r"|alternatively|however|therefore|overall|pros|cons|advantages|disadvantages|warning|caution|bonus tip"
    r"|final answer|short answer|response|disclaimer):$"
)

# Speaking of the material

_SAY = (
    r"(?:contain|provide|include|mention|specify|state|say|discuss|cover|address|give|offer|describe|explain|indicate"
    r"|answer|list|detail|present|clarify|elaborate|have|define|identify|reveal|tell|name|support)"
)
_SAID = (
    r"(?:mentioned|specified|stated|provided|given|discussed|addressed|covered|included|described|listed"
    r"|found|explained"
    r"|indicated|defined|identified|named|answered|available|clear)"
)
_NOTHING_ELSE = r"(?![^;:]{0,250}\d)[^;:]*$"
_OF_MATERIAL = one_of(
    rf"(?:none of )?{NAMED} {NOT} {_SAY}\b{_NOTHING_ELSE}",
    rf"{NAMED} (?:contains?|provides?|includes?|has|have|gives?|offers?|makes?) (?:no|little) "
    rf"(?:[a-z]{{2,20}} ){{0,3}}(?:information|details?|data|mention|guidance|instructions?"
    rf"|answers?)\b{_NOTHING_ELSE}",
    rf"[^:;,\d]{{1,150}} (?:is|are|was|were) not (?:explicitly |specifically |directly |clearly )?{_SAID}"
    rf" (?:in|by|within|from|on the basis of) {NAMED}$",
    rf"(?:this|these|the (?:above|answer|information|steps|summary|instructions)|my)\b[^:;,\d]{{0,60}} (?:is"
    rf"|are|was|were) "
    rf"(?:solely |only |all |entirely )?(?:based (?:up)?on|taken from|drawn from) {NAMED}(?: (?:above|only))?$",
    r"(?:this|these|the above|the|my) (?:answer|information|response|summary|steps|list|explanation)\b[^:;,\d]{0,30}"
    r" (?:is|are)(?: (?:solely|only|entirely))?$",
    rf"(?:i|we)(?:'ve| have)? (?:used|relied on|consulted) {NAMED}$",
    rf"{HANDED}:?$",
    r"(?:sources?|references?|citations?|see(?: also)?|cf|quoted from|source documents?)[:.]?$",
)

# Courtesies

_MORE = (
    r"(?:any|more|further|other|additional|anything|questions?|help|assistance|information|details"
    r"|clarification|what else)"
)
_COURTESY = one_of(
    r"(?:i|we) hope (?:this|that|it|these|the (?:above|information))\b[^;:]{0,30} "
    r"(?:helps?|is helpful|was helpful|are helpful|answers your question|clarifies)\b[^;:\d]{0,100}$",
    r"hope (?:this|that|it) helps\b[^;:\d]{0,60}$",
    rf"(?:please )?(?:let me know|feel free to (?:ask|reach out|contact me|let me know)|don't hesitate to "
    rf"(?:ask|reach out"
    rf"|contact me))(?: if\b[^;:]{{0,40}} {_MORE}\b[^;:\d]{{0,120}}| (?:any|more|further"
    rf"|follow-up)\b[^;:\d]{{0,80}})?$",
    r"(?:please )?let me know (?:if|whether|how|which|what) (?:you|i|there|this|that)\b[^;:\d]{0,120}$",
    rf"(?:if|should) you\b[^;:,]{{0,80}} {_MORE}\b[^;:,\d]{{0,80}}, (?:please |just |do )?(?:feel free|let me know"
    r"|don't hesitate|ask|i(?:'m| am) (?:here|happy))\b[^;:\d]{0,80}$",
    r"is there anything else\b[^;:\d]{0,80}\?$",
    r"(?:would|do) you (?:like|want) (?:me|more|any|further|additional)\b[^;:\d]{0,120}\?$",
    r"(?:do|did) you have any (?:other|more|further)\b[^;:\d]{0,60}\?$",
    r"(?:i'm|i am|i'd be|i would be) (?:always )?(?:happy|glad|here) to (?:help|assist|answer)\b[^;:\d]{0,100}$",
    r"(?:happy|glad) to help\b[^;:\d]{0,40}$",
    r"(?:you're|you are) (?:very )?welcome$",
    r"(?:thanks|thank you) for (?:asking|your (?:question|patience|interest|inquiry))\b[^;:\d]{0,40}$",
    r"(?:that's|that is|what) an? (?:great|good|excellent|interesting) question$",
    r"(?:great|good|excellent) question$",
    r"(?:good luck|enjoy|happy [a-z]{3,15}ing|all the best|best of luck|best regards|take care|have a "
    r"(?:great|nice|good)"
    r" day)\b[^;:,\d]{0,40}$",
)
_NO_CLAIM = re.compile(one_of(_LEADING_IN, _LABEL, _OF_MATERIAL, _COURTESY, ABROAD))
# Two clauses: what one of them announces, the other may have said.
_COORDINATED = re.compile(r"\band (?:it|they|its|their|he|she|his|her|this|that|these)\b")
# "do not say who": what is asked is no clause of its own.
_INDIRECT = re.compile(rf"{_SAY} (?:who|which)\b")
_LONGEST = 2_000  # characters, with citations; a longer sentence is no search worth


def is_no_claim(text: str) -> bool:
    """Whether a sentence says nothing that a passage could support or not; see the module for where the line is.

    A text without a letter or a digit is no claim, whether signs or an emoji, and a citation alone is none. A refusal
    need not be one by this function: ``is_refusal`` tells. Knows English and the usual phrases of German, French,
    Spanish, Italian, Portuguese, Dutch, Hindi, Japanese and Chinese. A sentence of more than 300 characters is a claim.
    Takes time linear in the text and raises nothing.
    """
    if _SEEN.search(text) is None:
        return True
    if len(text) > _LONGEST:
        return False
    told = TAG.sub(" ", without_references(text))
    if _SEEN.search(told) is None:
        return True
    whole = normalised(told).lstrip("¿¡([ ")
    said = _without_openings(whole)
    bare = BASIS.sub("", said).strip(" ,")
    if _goes_on(bare):
        return False
    return any(_NO_CLAIM.match(form) for form in (whole, said, _without_openings(bare)))


def _goes_on(said: str) -> bool:
    announced = _INDIRECT.sub(" ", said.removesuffix(":"))
    return GOES_ON.search(announced) is not None or _COORDINATED.search(announced) is not None


def _without_openings(said: str) -> str:
    """Drop up to three openings such as "Sure!" and "Note that"; not all of the sentence."""
    for _ in range(3):
        opening = _OPENING.match(said)
        if opening is None or opening.end() == len(said):
            break
        said = said[opening.end() :].lstrip("¿¡, ")
    return said
