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

from gasp_core.text.markup import TAG

LENGTH_LIMIT = 300
"""Characters; a longer sentence says something."""
_MARGIN = " \t\r\n*_>#-•`"


def one_of(*alternatives: str) -> str:
    """A regular expression that matches what one of these does."""
    return "(?:" + "|".join(alternatives) + ")"


TAIL = r"\b[^;:]*$"

# English: its names for what it was handed

_MATERIAL = "(?:context|passages?|documents?|sources?|excerpts?|texts?|information|articles?|materials?|snippets?)"
_GIVEN = "(?:provided|given|supplied|retrieved|available|above|attached)"
_THE = "(?:(?:any of )?(?:the|these|this|your|my) )?"
HANDED = f"{_THE}(?:{_GIVEN} {_MATERIAL}|{_MATERIAL} (?:that (?:was|were) )?{_GIVEN})"
NAMED = f"(?:{HANDED}|(?:any of )?(?:the|these) (?:context|passages|documents|sources|excerpts|search results))"
_BASED_ON = "(?:(?:solely |only |just )?based (?:solely |only |just )?(?:up)?on|according to)"
BASIS = re.compile(
    rf"\b(?:{_BASED_ON}|given|from|within|using|in|with|by) (?:only |just )?{NAMED}\b(?: alone| only)?,? ?"
)

# English: what it says of that and of itself

NOT = "(?:do not|does not|don't|doesn't|did not|didn't)(?: (?:actually|specifically|explicitly|directly|seem to))?"
_CANNOT = "(?:cannot|can not|can't|could not|couldn't|am unable to|am not able to|'m unable to|'m not able to)"
_DEGREE = (
    "(?:any|an|a|the|enough|sufficient|adequate|specific|relevant|explicit|direct|detailed|further|more|necessary)"
)
_SOME = f"(?:{_DEGREE} ){{0,3}}"
_LACK = "(?:not enough|not any|insufficient|no)"
_KNOWLEDGE = "(?:information|details?|data|context|knowledge|guidance|instructions?|answers?|mention)"
_REQUEST = "(?:the|this|that|your) (?:question|request|query)"
_SERVE = "(?:respond|provide|give|offer|determine|find|locate|say|tell|confirm|fulfil|fulfill|discuss)"

_ASSISTANT = one_of(
    rf"(?:i|we) (?:really |simply )?(?:do not|don't) know{TAIL}",
    rf"i(?:'m| am) not (?:sure|certain){TAIL}",
    rf"(?:i|we) ?{_CANNOT} (?:answer|help|assist|comply){TAIL}",
    rf"i ?{_CANNOT} {_SERVE}{TAIL}",
    rf"(?:i|we) (?:did not|didn't) find {_SOME}{_KNOWLEDGE}{TAIL}",
    rf"i (?:do not have|don't have|have no) {_SOME}(?:{_KNOWLEDGE}|access|ability|idea){TAIL}",
    rf"(?:unable|not able) to (?:answer|help|assist)(?: (?:with )?{_REQUEST})?$",
    rf"{_LACK} (?:relevant )?{_KNOWLEDGE}(?: (?:found|available|provided))?(?: to answer(?: {_REQUEST})?)?$",
    r"(?:n/a|unanswerable|(?:the )?answer (?:is )?(?:not found|unknown))$",
    rf"please (?:provide|share|supply|give)(?: me| us)?(?: with)? (?:more|additional|further) {_KNOWLEDGE}{TAIL}",
    rf"(?:could|can|would) you (?:please )?(?:provide|share|clarify|rephrase){TAIL}",
)
_HANDED_OVER = one_of(
    rf"(?:none of )?{NAMED} {NOT} (?:contain|provide|include|have|offer|give) {_SOME}{_KNOWLEDGE}{TAIL}",
    rf"{NAMED} (?:contains?|provides?|includes?|have|has|offers?|gives?) no {_SOME}{_KNOWLEDGE}{TAIL}",
    rf"{NAMED} {NOT} answer {_REQUEST}{TAIL}",
    rf"{HANDED} {NOT} (?:mention|specify|address|state|say|discuss|cover){TAIL}",
    rf"{NAMED} (?:is|are) (?:not sufficient|insufficient|not enough|not relevant) to (?:answer|determine){TAIL}",
)
# These may well be about the subject, unless a basis ("in the given passages") is beside them.
_NEEDING_BASIS = one_of(
    rf"(?:it is|it's) (?:not possible|impossible) to (?:answer|determine|say|tell|know|provide|identify){TAIL}",
    rf"(?:unable|not able) to (?:answer|provide|determine|give|find){TAIL}",
    rf"(?:{_REQUEST}|(?:the|this|that) (?:answer|information))\b[^;:]{{0,99}} (?:cannot|can't|could not) be{TAIL}",
    rf"(?:the|this|that) (?:answer|information)\b[^;:]{{0,99}} (?:is|was) not{TAIL}",
    rf"(?:there (?:is|are) )?{_LACK} {_SOME}{_KNOWLEDGE}{TAIL}",
    rf"not (?:mentioned|specified|stated|found|available|provided|given){TAIL}",
)

# Other languages: the usual phrases. Letters are folded, so that the German "weiß" is "weiss".

_DE_GIVEN = (
    "(?:bereitgestellte|angegebene|vorliegende|gegebene|zur verfügung gestellte)[nmrs]? "
    "(?:kontext|texte?|passagen|dokumente?|quellen)"
)
_DE_OFFER = "(?:enthält|enthalten|liefert|liefern|bietet|bieten|nennt|nennen)"
_FR_GIVEN = "(?:contexte|passages|documents|sources|extraits)(?: fournie?s?| donnés?)?"
_FR_OFFER = "(?:contient|contiennent|fournit|fournissent|mentionnent?|donnent?|permet|permettent)"
_ES_GIVEN = "(?:contexto|pasajes|documentos|fuentes|fragmentos)(?: proporcionad[oa]s?| dad[oa]s?)?"
_ES_OFFER = "(?:contienen?|proporcionan?|incluyen?|mencionan?|ofrecen?)"
_IT_GIVEN = "(?:contesto|passaggi|brani|documenti|fonti)(?: fornit[oie]| dat[oie])?"
_IT_OFFER = "(?:contiene|contengono|fornisce|forniscono|menziona|menzionano|include|includono)"
_PT_GIVEN = "(?:contexto|passagens|documentos|fontes|trechos)(?: fornecid[oa]s?| dad[oa]s?)?"
_PT_OFFER = "(?:contém|contêm|fornece|fornecem|inclui|incluem|menciona|mencionam)"
_ZH_GIVEN = "(?:提供|给定|给出)的(?:上下文|段落|文章|资料|内容|信息|文档|材料|文本)[中里]?"
_JA_GIVEN = "(?:ご?提供された|与えられた|提示された)(?:文脈|パッセージ|コンテキスト|文書|情報|資料|テキスト|文章)"
_NL_GIVEN = "(?:(?:gegeven|verstrekte|aangeleverde) )?(?:context|tekst|passages|documenten|bronnen)"
_NL_OFFER = "(?:bevat|bevatten|geeft|geven|biedt|bieden|vermeldt|vermelden|noemt|noemen)"
_HI_GIVEN = (
    "(?:(?:दिए|दिये) (?:गए|गये) |प्रदान (?:किए|किये) (?:गए|गये) |प्रदत्त |उपलब्ध |उपरोक्त )"
    "(?:संदर्भ|सन्दर्भ|अनुच्छेद|अनुच्छेदों|अंश|अंशों|दस्तावेज़|दस्तावेज|दस्तावेज़ों|दस्तावेजों|स्रोत|स्रोतों|जानकारी|पाठ)"
)
_JA_ABSENT = "(?:含まれていません|記載されていません|見つかりません(?:でした)?|ありません|言及されていません)"

_ABROAD = one_of(
    r"(?:ich weiss (?:es |das |die antwort )?(?:leider )?nicht|das weiss ich (?:leider )?nicht)$",
    r"(?:ich kann|kann ich) [^;:]{0,150}\b(?:nicht|keine)\b[^;:]{0,60}\b(?:beantworten|antworten|helfen|weiterhelfen)$",
    rf"(?:der|die|das) {_DE_GIVEN} {_DE_OFFER} [^;:]{{0,80}}\bkeine{TAIL}",
    rf"(?:die passagen|der kontext) {_DE_OFFER} (?:leider )?keine (?:angaben|informationen|hinweise|antwort){TAIL}",
    rf"(?:dazu |hierzu |darüber )?(?:habe ich|ich habe|liegen mir) (?:leider )?(?:dazu |hierzu )?keine "
    rf"(?:angaben|informationen|antwort|daten){TAIL}",
    rf"(?:dazu|hierzu|darüber) kann ich (?:leider )?(?:nichts|keine (?:aussage|auskunft|angaben)){TAIL}",
    rf"je ne sais pas{TAIL}",
    rf"je (?:n'ai|ne dispose) (?:pas|d'aucune)[^;:]{{0,30}} (?:d'|l')?(?:informations?|accès|éléments){TAIL}",
    rf"je n'ai (?:pas )?(?:trouvé )?(?:pas |aucune )?(?:d')?(?:informations?|réponse){TAIL}",
    rf"je ne (?:peux|suis) pas (?:en mesure de |capable de )?(?:vous |y )?(?:répondre|aider){TAIL}",
    r"impossible de répondre(?: à (?:la|cette|votre) question)?$",
    rf"(?:le|les) {_FR_GIVEN} ne {_FR_OFFER} (?:pas|aucune?){TAIL}",
    r"no (?:lo )?sé(?: la respuesta)?$",
    r"no (?:tengo|dispongo de|cuento con|encuentro|encontré|he encontrado) (?:ninguna |suficiente |la )?"
    rf"información{TAIL}",
    rf"no (?:puedo|soy capaz de) (?:responder|contestar|ayudar(?:te|le|lo|la)?){TAIL}",
    rf"(?:el|los|las) {_ES_GIVEN} no {_ES_OFFER}{TAIL}",
    r"non (?:lo so|so la risposta)$",
    rf"non (?:posso|sono in grado di) (?:rispondere|aiutar(?:e|ti|la|vi)){TAIL}",
    rf"(?:il|i|le) {_IT_GIVEN} non {_IT_OFFER}{TAIL}",
    r"(?:eu )?não sei(?: a resposta)?$",
    rf"(?:eu )?não (?:posso|consigo|sou capaz de) (?:te |lhe |o )?(?:responder|ajudar){TAIL}",
    rf"(?:o|os|as) {_PT_GIVEN} não {_PT_OFFER}{TAIL}",
    r"(?:ik weet (?:het|dat|het antwoord) (?:helaas )?niet|dat weet ik (?:helaas )?niet)$",
    r"(?:ik kan|kan ik) [^;:]{0,150}\b(?:niet|geen)\b[^;:]{0,60}\b(?:beantwoorden|antwoorden|helpen)$",
    rf"(?:de|het) {_NL_GIVEN} {_NL_OFFER} [^;:]{{0,80}}\bgeen{TAIL}",
    r"(?:मुझे|मुझको|हमें) (?:इसका |इस का |इसकी |इस बारे में |यह |उत्तर |जवाब |इस प्रश्न का उत्तर )?"
    r"(?:नहीं पता|पता नहीं|नहीं मालूम|मालूम नहीं|ज्ञात नहीं)(?: है)?$",
    r"(?:मैं|हम) [^;:]{0,150}(?:उत्तर|जवाब|मदद|सहायता) (?:नहीं (?:दे|कर) (?:सकता|सकती|सकते|पाऊँगा|पाऊंगा|पाऊँगी|पाऊंगी)|"
    r"(?:देने|करने) में (?:असमर्थ|सक्षम नहीं))(?: (?:हूँ|हूं|हैं))?$",
    rf"{_HI_GIVEN} (?:में|से) [^;:]{{0,150}}(?:जानकारी|उत्तर|जवाब|विवरण|सूचना|उल्लेख|बताया|दिया गया|दी गई) "
    r"(?:नहीं|मौजूद नहीं|उपलब्ध नहीं|शामिल नहीं)(?: (?:है|हैं|दिया|दी|किया|मिला|मिली|मिलता|मिलती|गया|गई|गयी)){0,3}$",
    rf"{_HI_GIVEN} के आधार पर [^;:]{{0,150}}(?:उत्तर|जवाब) (?:देना|दे पाना) (?:संभव|सम्भव) नहीं(?: है)?$",
    r"我?(?:不知道|不清楚)(?:答案|这个问题的答案)?$",
    r"(?:(?:根据|基于)[^,]{1,20},?)?我?(?:无法|不能|没办法)(?:为您|帮您)?(?:回答|作答|帮助|协助)[^;:]*$",
    rf"所?{_ZH_GIVEN}并?(?:没有|未|不)(?:包含|提及|提到|提供|涉及|说明)[^;:]*$",
    r"(?:私は|私には)?(?:わかりません|分かりません)$",
    r"[^;:。]{0,99}(?:お答え|回答|お手伝い)(?:すること[がは])?(?:できません|いたしかねます|できかねます)$",
    r"(?:それ|その[^;:。]{1,20}|これ|この[^;:。]{1,20})(?:に関する|についての)?(?:情報)?(?:は|が)?(?:わかりません|分かりません|わかりかねます)$",
    rf"(?:その|この|必要な|十分な)[^;:。]{{0,20}}(?:情報|答え|回答)(?:は|が)、?{_JA_GIVEN}(?:に|の中に)は?{_JA_ABSENT}$",
    rf"{_JA_GIVEN}[^;:。]{{0,150}}{_JA_ABSENT}$",
)

# What may stand before, and what must not come after

_APOLOGY = one_of(
    r"(?:i'm|i am|we're|we are) (?:very |so |really )?(?:sorry|afraid)|sorry|i (?:do )?apologi[sz]e|(?:my )?apologies",
    r"(?:es )?tut mir (?:sehr )?leid|(?:je suis )?désolée?|lo siento|mi dispiace|sinto muito|desculpe",
    r"het spijt (?:me|mij)|helaas",
    r"(?:मुझे |हमें )?(?:खेद|अफ़सोस|अफसोस) (?:है|हैं)(?: कि)?|(?:मुझे |हमें )?(?:क्षमा|माफ़|माफ) (?:करें|कीजिए|कीजिएगा)"
    r"|(?:दुर्भाग्य से|दुर्भाग्यवश)",
    r"(?:很|非常)?抱歉|对不起|申し訳(?:ありません|ございません)|すみません",
    r"unfortunately|regrettably|leider|malheureusement|lamentablemente|purtroppo|infelizmente|残念ながら",
    r"therefore|thus|however|please note that|note that|as an ai(?: language)?(?: model)?",
)
_LEAD_IN = re.compile(rf"{_APOLOGY}[,.!、が ]{{0,3}}(?:(?:but|that|aber|mais|pero|ma|mas|maar|लेकिन|परंतु|किंतु) |但是?)?")
GOES_ON = re.compile(
    r"[;:—]|, and\b|, so (?!i\b|we\b|it is not\b)|, as (?!the question\b|the information\b|they\b|it is not\b)"
    r"|\b(?:but|however|though|although|while|whereas|instead|only|except|beyond"
    r"|other than|because|since|rather|which|who|aber|jedoch|sondern|allerdings|mais|cependant|pero|sin embargo|ma"
    r"|tuttavia|però|mas|porém|maar|echter)\b"
    r"|(?:लेकिन|परंतु|परन्तु|किंतु|किन्तु|मगर|हालांकि|हालाँकि|इसलिए) |但|不过|然而|しかし|ただし"
)
_REFUSAL = re.compile(one_of(_ASSISTANT, _HANDED_OVER, _ABROAD))
_REFUSAL_ON_BASIS = re.compile(_NEEDING_BASIS)


def is_refusal(text: str) -> bool:
    """Whether a sentence only says that the question cannot be answered from what was given, or that no help can be.

    Made for deciding that an answer holds no claim at all, so it would rather miss a refusal than take a claim for
    one: "I don't know.", "Unable to answer based on given passages." and "The provided context does not contain
    information about fees." are refusals; "The study does not mention side effects." and "The passages do not mention
    fees." are claims. Knows English and the usual phrases of German, French, Spanish, Italian, Portuguese, Dutch,
    Hindi, Chinese and Japanese. A sentence of more than 300 characters is none. Takes bounded time and raises nothing.
    """
    whole = normalised(text)
    said = _without_lead_in(whole)
    if not said:
        return bool(whole)  # an apology and no more
    bare = BASIS.sub("", said).strip(" ,")
    if GOES_ON.search(bare):
        return False
    if _REFUSAL.match(said) or _REFUSAL.match(bare):
        return True
    return bare != said and _REFUSAL_ON_BASIS.match(bare) is not None


def normalised(text: str) -> str:
    """The text in one form, without case, tags, outer markup and what ends a sentence; a colon or question mark stays.

    It is empty for a text that is longer than LENGTH_LIMIT.
    """
    if len(text) > LENGTH_LIMIT:
        return ""
    folded = unicodedata.normalize("NFKC", TAG.sub(" ", text)).casefold().replace("’", "'")
    if len(folded) > LENGTH_LIMIT:  # a ligature can stand for many letters
        return ""
    return " ".join(folded.split()).strip(_MARGIN).rstrip(" .!…。।'\"”)」")


def _without_lead_in(said: str) -> str:
    """Drop up to three openings such as "I'm sorry, but"."""
    for _ in range(3):
        opening = _LEAD_IN.match(said)
        said = said[opening.end() :] if opening else said
    return said.strip(" ,")
