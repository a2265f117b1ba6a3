"""Sentences that only say that there is no answer.

The line is drawn between the assistant speaking of itself and of what it was handed ("I cannot answer", "the provided
context does not contain information about fees"), which is a refusal, and the answer speaking of its subject ("the
study does not mention side effects"), which is a claim to be scored. Material that is only named, not said to be
provided ("the passages"), makes a refusal when it is said to hold no information, but not when it is said not to
mention something. A refusal that goes on to say something ("…, but it lists a price") is a claim too.

Every pattern is anchored, without a repetition inside a repetition, and sees at most 300 characters.
"""

from __future__ import annotations

import re
import unicodedata

_LENGTH_LIMIT = 300  # characters; a longer sentence says something
_MARGIN = " \t\r\n*_>#-•`"
_TAIL = r"\b[^;:]*$"

# English

_MATERIAL = r"(?:context|passages?|documents?|sources?|excerpts?|texts?|information|articles?|materials?|snippets?)"
_GIVEN = r"(?:provided|given|supplied|retrieved|available|above|attached)"
_THE = r"(?:(?:any of )?(?:the|these|this|your|my) )?"
_HANDED = rf"{_THE}(?:{_GIVEN} {_MATERIAL}|{_MATERIAL} (?:{_GIVEN}|that (?:was|were) {_GIVEN}))"
_NAMED = rf"(?:{_HANDED}|(?:any of )?(?:the|these) (?:context|passages|documents|sources|excerpts|search results))"
_BASIS = re.compile(
    r"\b(?:(?:(?:solely|only|just) )?based (?:(?:solely|only|just) )?(?:up)?on|according to|given|from|within|using|in|with"
    rf"|by) (?:(?:only|just) )?{_NAMED}\b(?: alone| only)?,? ?"
)
_NOT = r"(?:do not|does not|don't|doesn't|did not|didn't)(?: (?:actually|specifically|explicitly|directly|seem to))?"
_CANNOT = r"(?:cannot|can not|can't|could not|couldn't|am unable to|am not able to|'m unable to|'m not able to)"
_SOME = (
    r"(?:(?:any|an|a|the|enough|sufficient|adequate|specific|relevant|explicit|direct|detailed|clear|further|more"
    r"|necessary|required) ){0,3}"
)
_KNOWLEDGE = r"(?:information|details?|data|context|knowledge|guidance|instructions?|answers?|mention)"

_ASSISTANT = (
    rf"(?:i|we) (?:really |simply )?(?:do not|don't) know{_TAIL}",
    rf"i(?:'m| am) not (?:sure|certain){_TAIL}",
    rf"(?:i|we) ?{_CANNOT} (?:answer|help|assist|comply){_TAIL}",
    rf"i ?{_CANNOT} (?:respond|provide|give|offer|determine|find|locate|say|tell|confirm|fulfil|fulfill|discuss){_TAIL}",
    rf"(?:i|we) (?:did not|didn't) find {_SOME}{_KNOWLEDGE}{_TAIL}",
    rf"i (?:(?:do not|don't) have|have no) {_SOME}(?:{_KNOWLEDGE}|access|ability|idea){_TAIL}",
    r"(?:unable|not able) to (?:answer|help|assist)(?: (?:with )?(?:the|this|that|your) (?:question|request|query))?$",
    rf"(?:not enough|insufficient|no|no relevant) {_KNOWLEDGE}(?: (?:found|available|provided))?"
    r"(?: to answer(?: (?:the|this|that|your) (?:question|request|query))?)?$",
    r"(?:n/a|unanswerable|(?:the )?answer (?:is )?(?:not found|unknown))$",
    rf"please (?:provide|share|supply|give)(?: me| us)?(?: with)? (?:more|additional|further) {_KNOWLEDGE}{_TAIL}",
    rf"(?:could|can|would) you (?:please )?(?:provide|share|clarify|rephrase){_TAIL}",
)

_HANDED_OVER = (
    rf"(?:none of )?{_NAMED} (?:{_NOT} )?(?:contain|provide|include|have|offer|give)s? (?:no )?{_SOME}{_KNOWLEDGE}{_TAIL}",
    rf"{_NAMED} {_NOT} answer (?:the|this|that|your) (?:question|request|query){_TAIL}",
    rf"{_HANDED} {_NOT} (?:mention|specify|address|state|say|discuss|cover){_TAIL}",
    rf"{_NAMED} (?:is|are) (?:not sufficient|insufficient|not enough|not relevant) to (?:answer|determine){_TAIL}",
)

# These need a basis ("in the given passages") beside them, else they may well be about the subject.
_IMPERSONAL = (
    rf"(?:it is|it's) (?:not possible|impossible) to (?:answer|determine|say|tell|know|provide|identify){_TAIL}",
    rf"(?:unable|not able) to (?:answer|provide|determine|give|find){_TAIL}",
    rf"(?:the|this|that|your) (?:question|answer|information)\b[^;:]{{0,99}} (?:cannot|can't|could not) be"
    rf" (?:answered|determined|found|provided|given){_TAIL}",
    rf"(?:the|this|that) (?:answer|information)\b[^;:]{{0,99}} (?:is|was) not"
    rf" (?:given|found|available|provided|mentioned|included|contained|present|specified){_TAIL}",
    rf"(?:there (?:is|are) )?(?:no|not enough|insufficient|not any) {_SOME}{_KNOWLEDGE}{_TAIL}",
    rf"not (?:mentioned|specified|stated|found|available|provided|given){_TAIL}",
)

# German, French, Spanish, Italian, Portuguese, Chinese, Japanese

_GERMAN = (
    r"(?:ich weiss (?:es |das |die antwort )?(?:leider )?nicht|das weiss ich (?:leider )?nicht)$",
    r"(?:ich kann|kann ich) [^;:]{0,150}\b(?:nicht|keine)\b[^;:]{0,60}\b(?:beantworten|helfen|weiterhelfen|antworten)$",
    r"(?:der|die|das) (?:bereitgestellten?|angegebenen?|vorliegenden?|gegebenen?) (?:kontext|text|texte|passagen"
    rf"|dokumente?|quellen|informationen) (?:enth(?:ä|ae)lt|enthalten|liefern?|bieten|nennen) [^;:]{{0,80}}\bkeine{_TAIL}",
)
_FRENCH = (
    rf"je ne sais pas{_TAIL}",
    r"je ne (?:peux|suis) pas (?:en mesure de |capable de )?(?:vous |y )?(?:répondre|aider)" + _TAIL,
    r"impossible de répondre(?: à (?:la|cette|votre) question)?$",
    r"(?:le|les) (?:contexte|passages|documents|sources|extraits)(?: fournie?s?| donnés?)? ne (?:contient|contiennent"
    rf"|fournit|fournissent|mentionnent?|donnent?|permet|permettent) (?:pas|aucune?){_TAIL}",
)
_SPANISH = (
    r"no (?:lo )?sé(?: la respuesta)?$",
    rf"no (?:puedo|soy capaz de) (?:responder|contestar|ayudar(?:te|le|lo|la)?){_TAIL}",
    r"(?:el|los|las) (?:contexto|pasajes|documentos|fuentes|fragmentos)(?: proporcionad[oa]s?| dad[oa]s?)? no"
    rf" (?:contienen?|proporcionan?|incluyen?|mencionan?|ofrecen?){_TAIL}",
)
_ITALIAN = (
    r"non (?:lo so|so la risposta)$",
    rf"non (?:posso|sono in grado di) (?:rispondere|aiutar(?:e|ti|la|vi)){_TAIL}",
    r"(?:il|i|le) (?:contesto|passaggi|brani|documenti|fonti)(?: fornit[oie]| dat[oie])? non (?:contiene|contengono"
    rf"|fornisce|forniscono|menziona|menzionano|include|includono){_TAIL}",
)
_PORTUGUESE = (
    r"(?:eu )?não sei(?: a resposta)?$",
    rf"(?:eu )?não (?:posso|consigo|sou capaz de) (?:te |lhe |o )?(?:responder|ajudar|ajudá-l[oa]){_TAIL}",
    r"(?:o|os|as) (?:contexto|passagens|documentos|fontes|trechos)(?: fornecid[oa]s?| dad[oa]s?)? não (?:contém|contêm"
    rf"|fornecem?|inclui|incluem|mencionam?){_TAIL}",
)
_CHINESE = (
    r"我?(?:不知道|不清楚)(?:答案|这个问题的答案)?$",
    r"(?:(?:根据|基于)[^,，]{1,20}[,，]?)?我?(?:无法|不能|没办法)(?:为您|帮您)?(?:回答|作答|帮助|协助)[^;:]*$",
    r"(?:所)?(?:提供|给定|给出)的(?:上下文|段落|文章|资料|内容|信息|文档|材料|文本)[中里]?并?(?:没有|未|不)"
    r"(?:包含|提及|提到|提供|涉及|说明)[^;:]*$",
)
_JAPANESE = (
    r"(?:私は|私には)?(?:わかりません|分かりません)$",
    r"[^;:。]{0,99}(?:お答え|回答|お手伝い)(?:すること[がは])?(?:できません|いたしかねます|できかねます)$",
    r"(?:提供された|与えられた)(?:文脈|コンテキスト|文書|情報|資料|テキスト|文章)[^;:。]{0,150}"
    r"(?:含まれていません|記載されていません|見つかりません(?:でした)?|ありません|言及されていません)$",
)

_LEAD_IN = re.compile(
    r"(?:(?:i'm|i am|we're|we are) (?:very |so |really )?(?:sorry|afraid)|i (?:do )?apologi[sz]e|sorry|(?:my )?apologies"
    r"|unfortunately|regrettably|therefore|thus|however|as an ai(?: language)?(?: model)?"
    r"|(?:es )?tut mir (?:sehr )?leid|leider|(?:je suis )?désolée?|malheureusement|lo siento|lamentablemente"
    r"|mi dispiace|purtroppo|sinto muito|desculpe|infelizmente|(?:很|非常)?抱歉|对不起|申し訳(?:ありません|ございません)"
    r"|すみません|残念ながら)[,.!、が ]{0,3}(?:(?:but|that|aber|mais|pero|ma|mas) |但是?)?"
)
_GOES_ON = re.compile(
    r"[;:—]|, and\b|, so (?!i\b|we\b|it\b)|\b(?:but|however|though|although|while|whereas|instead|only|except|beyond"
    r"|other than|because|since|rather|which|who|aber|jedoch|sondern|allerdings|mais|cependant|pero|sin embargo|ma"
    r"|tuttavia|però|mas|porém)\b|但|不过|然而|しかし|ただし"
)


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


_REFUSAL = _any_of(
    *_ASSISTANT,
    *_HANDED_OVER,
    *_GERMAN,
    *_FRENCH,
    *_SPANISH,
    *_ITALIAN,
    *_PORTUGUESE,
    *_CHINESE,
    *_JAPANESE,
)
_REFUSAL_WITH_BASIS = _any_of(*_IMPERSONAL)


def is_refusal(text: str) -> bool:
    """Whether a sentence only says that the question cannot be answered from what was given, or that no help can be.

    Made for deciding that an answer holds no claim at all, so it would rather miss a refusal than take a claim for
    one: "I don't know.", "Unable to answer based on given passages." and "The provided context does not contain
    information about fees." are refusals; "The study does not mention side effects." and "The passages do not mention
    fees." are claims. Knows English and the usual phrases of German, French, Spanish, Italian, Portuguese, Chinese
    and Japanese. A sentence of more than 300 characters is none. Takes bounded time and raises nothing.
    """
    if len(text) > _LENGTH_LIMIT:
        return False
    said = _without_lead_in(_normalised(text))
    if said is None:
        return False
    bare = _BASIS.sub("", said).strip(" ,")
    if _GOES_ON.search(bare):
        return False
    if _REFUSAL.match(said) or _REFUSAL.match(bare):
        return True
    return bare != said and _REFUSAL_WITH_BASIS.match(bare) is not None


def _normalised(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(folded.split()).strip(_MARGIN).rstrip(" .!…。'\"”)」")


def _without_lead_in(said: str) -> str | None:
    """Drop up to three openings such as "I'm sorry, but". An apology alone stays; None stands for no text at all."""
    for _ in range(3):
        opening = _LEAD_IN.match(said)
        if opening is None:
            break
        said = said[opening.end() :].strip(" ,") or "n/a"
    return said or None
