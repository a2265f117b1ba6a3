"""What in a sentence is either right or wrong: its numbers, dates, units, and whether it denies something.

Known for the languages with lists below; without a language those of English are taken. Own lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from gasp_core.text.languages import Language, without_accents
from gasp_core.text.scripts import folded
from gasp_core.text.words import Word

_NUMBER_WORDS = {
    Language.ENGLISH: (
        "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty"
    ),
    Language.GERMAN: (
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
        "achtzehn neunzehn zwanzig"
    ),
    Language.FRENCH: (
        "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize - - - vingt"
    ),
    Language.SPANISH: (
        "dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
        "dieciocho diecinueve veinte"
    ),
    Language.ITALIAN: (
        "due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
        "diciassette diciotto diciannove venti"
    ),
    Language.PORTUGUESE: (
        "dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezesseis dezessete dezoito "
        "dezenove vinte"
    ),
    Language.DUTCH: (
        "twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien achttien "
        "negentien twintig"
    ),
    Language.HINDI: "दो तीन चार पांच छह सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह सोलह सत्रह अठारह उन्नीस बीस",
}
_ROUND_WORDS = {
    Language.ENGLISH: "thirty forty fifty sixty seventy eighty ninety hundred thousand",
    Language.GERMAN: "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend",
    Language.FRENCH: "trente quarante cinquante soixante - - - cent mille",
    Language.SPANISH: "treinta cuarenta cincuenta sesenta setenta ochenta noventa cien mil",
    Language.ITALIAN: "trenta quaranta cinquanta sessanta settanta ottanta novanta cento mille",
    Language.PORTUGUESE: "trinta quarenta cinquenta sessenta setenta oitenta noventa cem mil",
    Language.DUTCH: "dertig veertig vijftig zestig zeventig tachtig negentig honderd duizend",
    Language.HINDI: "तीस चालीस पचास साठ सत्तर अस्सी नब्बे सौ हज़ार",
}
_ROUND = ("30", "40", "50", "60", "70", "80", "90", "100", "1000")
# Twelve months, then seven days from Monday on. In English they have a capital, which tells May from may.
_CALENDAR = {
    Language.ENGLISH: (
        "january/jan february/feb march april/apr may june/jun july/jul august/aug september/sep/sept october/oct "
        "november/nov december/dec monday tuesday wednesday thursday friday saturday sunday"
    ),
    Language.GERMAN: (
        "januar/jan februar/feb märz april mai juni juli august september/sept oktober/okt november/nov dezember/dez "
        "montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag"
    ),
    Language.FRENCH: (
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre "
        "lundi mardi mercredi jeudi vendredi samedi dimanche"
    ),
    Language.SPANISH: (
        "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre "
        "lunes martes miércoles jueves viernes sábado domingo"
    ),
    Language.ITALIAN: (
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre "
        "lunedì martedì mercoledì giovedì venerdì sabato domenica"
    ),
    Language.PORTUGUESE: (
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro "
        "segunda terça quarta quinta sexta sábado domingo"
    ),
    Language.DUTCH: (
        "januari februari maart april mei juni juli augustus september oktober november december "
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
    ),
    Language.HINDI: (
        "जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर "
        "सोमवार मंगलवार बुधवार गुरुवार/बृहस्पतिवार शुक्रवार शनिवार रविवार/इतवार"
    ),
}
# One unit a line: its names in all languages, without accents. A unit counts behind a number only.
_UNITS = """
% percent prozent procent pourcent ciento cento प्रतिशत パーセント
€ eur euro euros यूरो ユーロ 欧元
$ usd dollar dollars dolares dollari डॉलर ドル 美元
£ gbp pound pounds pfund livres libras
₹ inr rupee rupees rupien roupies rupias रुपये रुपए रुपया
¥ jpy yen 円 日元
元 yuan 人民币
mm millimeter millimetre millimetres millimeters millimetros millimetri मिलीमीटर ミリ
cm zentimeter centimeter centimetre centimetres centimeters centimetros centimetri सेंटीमीटर センチ 厘米
m meter metre metres meters metern metros metri मीटर メートル 米
km kilometer kilometre kilometres kilometers kilometern kilometros chilometri किलोमीटर キロメートル 公里
mi mile miles meile meilen millas miglia मील マイル 英里
ft foot feet fuss pieds pies piedi
in inch inches zoll pouces pulgadas pollici
g gram grams gramm gramme grammes gramos grammi ग्राम グラム 克
mg milligram milligrams milligramm milligrammes miligramos मिलीग्राम ミリグラム 毫克
kg kilo kilos kilogram kilograms kilogramm kilogrammes kilogramos chili किलो किलोग्राम キロ 公斤 千克
t ton tons tonne tonnes tonnen toneladas tonnellate टन トン 吨
lb lbs
oz ounce ounces unzen
l liter litre litres liters litern litros litri लीटर リットル 升
ml milliliter millilitre milliliters millilitres mililitros ミリリットル 毫升
s sec second seconds sekunde sekunden seconde secondes segundos secondi सेकंड 秒
min minute minutes minuten minutos minuti मिनट 分 分钟
h hour hours stunde stunden heure heures horas hora ore घंटे घंटा 時間 小时
d day days tag tage tagen jour jours dias dia giorni दिन 日間 天
week weeks woche wochen semaine semaines semanas semana settimane हफ्ते सप्ताह 週間 周
month months monat monate monaten mois meses mes mesi महीने महीना か月 ヶ月 个月
year years jahr jahre jahren an ans annee annees anos ano anni वर्ष साल 年間
thousand tausend mille mil हजार 千
million millions mio millionen millones milioni milhoes लाख 百万
billion billions milliard milliards milliarden milliardo miliardi करोड़
°c celsius
°f fahrenheit
degree degrees grad degres grados gradi डिग्री 度
kw kilowatt kilowatts किलोवाट
kwh
w watt watts
v volt volts
mph
kmh
"""
_NEGATION = {
    Language.ENGLISH: r"\b(?:not|no|never|none|neither|nor|nobody|nothing|without|cannot|unable|lacks?|fails?)\b|n't\b",
    Language.GERMAN: r"\b(?:nicht|kein\w{0,2}|nie|niemals|niemand|nichts|weder|ohne)\b",
    Language.FRENCH: r"\b(?:ne|pas|jamais|aucune?|rien|personne ne|ni|sans)\b|\bn'",
    Language.SPANISH: r"\b(?:no|nunca|jamas|ningun[oa]?|nadie|nada|ni|sin|tampoco)\b",
    Language.ITALIAN: r"\b(?:non|mai|nessun[oa]?|niente|nulla|ne|senza)\b",
    Language.PORTUGUESE: r"\b(?:nao|nunca|jamais|nenhuma?|ninguem|nada|nem|sem)\b",
    Language.DUTCH: r"\b(?:niet|geen|nooit|niemand|niets|noch|zonder)\b",
    Language.HINDI: r"(?<!\w)(?:नहीं|नही|न|मत|बिना|कभी नहीं|मना|निषेध)(?!\w)",
    Language.JAPANESE: r"ない|なかっ|なく|ません|ずに|られず|無し|なし|ぬ\b",
    Language.CHINESE: r"不|没|沒|無|无|未|非|别|莫",
    Language.KOREAN: r"않|없|못|아니|안\s",
    Language.THAI: r"ไม่|มิได้|ห้าม",
}
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_SIGNS = re.compile(r"[%€$£₹¥]|°\s?[cf]\b", re.IGNORECASE)
_LONGEST_UNIT = 6  # characters, in scripts without blanks
_BEHIND_NUMBER = re.compile(rf"\d\s?([^\W\d_]{{1,{_LONGEST_UNIT}}})")
_DATE_SIGNS = {"年": "y", "月": "m", "日": "d"}
_JAPANESE_DATE = re.compile(r"(\d{1,4})([年月日])")


@dataclass(frozen=True, slots=True)
class Facts:
    """The numbers of a sentence, its months, days and years, its units, and whether it denies something."""

    numbers: frozenset[str]
    dates: frozenset[str]
    units: frozenset[str]
    negates: bool


def facts(text: str, said: Sequence[Word], language: Language | None) -> Facts:
    """The facts of a text with these words. Takes time linear in its length."""
    language = language or Language.ENGLISH
    plain = folded(text).casefold()
    bare = [without_accents(word.written.casefold()) for word in said]
    return Facts(
        numbers=frozenset(_numbers(said, bare, language)),
        dates=frozenset(_dates(said, bare, plain, language)),
        units=frozenset(_units(said, bare, plain, language)),
        negates=_negates(plain, language),
    )


def _numbers(said: Sequence[Word], bare: Sequence[str], language: Language) -> Iterator[str]:
    known = _number_words(language)
    for word, name in zip(said, bare, strict=True):
        if word.stem[0].isdigit():
            yield word.stem
        elif name in known:
            yield known[name]


def _dates(said: Sequence[Word], bare: Sequence[str], plain: str, language: Language) -> Iterator[str]:
    known = _calendar(language)
    for word, name in zip(said, bare, strict=True):
        if name in known and (language is not Language.ENGLISH or word.is_capitalised):
            yield known[name]
        elif _YEAR.fullmatch(word.stem):
            yield word.stem
    for number, sign in _JAPANESE_DATE.findall(plain):
        yield f"{_DATE_SIGNS[sign]}{number}"


def _units(said: Sequence[Word], bare: Sequence[str], plain: str, language: Language) -> Iterator[str]:
    known = _unit_names()
    numbers = _number_words(language)
    before = False
    for word, name in zip(said, bare, strict=True):
        if before and name in known:
            yield known[name]
        before = word.stem[0].isdigit() or name in numbers
    for sign in _SIGNS.findall(plain):
        yield known["".join(sign.split())]
    if not plain.isascii():
        for behind in _BEHIND_NUMBER.findall(plain):
            yield from _longest_unit(behind)


def _longest_unit(behind: str) -> Iterable[str]:
    """The unit that what stands behind a number begins with, in scripts without blanks."""
    known = _unit_names()
    for end in range(len(behind), 0, -1):
        if behind[:end] in known and not behind[:end].isascii():
            return (known[behind[:end]],)
    return ()


def _negates(plain: str, language: Language) -> bool:
    pattern = _negation(language)
    return pattern is not None and pattern.search(without_accents(plain.replace("’", "'"))) is not None


@cache
def _number_words(language: Language) -> dict[str, str]:
    small = without_accents(_NUMBER_WORDS.get(language, "").casefold()).split()
    large = without_accents(_ROUND_WORDS.get(language, "").casefold()).split()
    return {word: str(number) for number, word in enumerate(small, 2)} | dict(zip(large, _ROUND, strict=False))


@cache
def _calendar(language: Language) -> dict[str, str]:
    names = without_accents(_CALENDAR.get(language, "").casefold()).split()
    # Monday is no thirteenth month: in its own way named, it cannot be taken for one.
    canonical = [f"m{month}" for month in range(1, 13)] + [f"day {day}" for day in range(1, 8)]
    return {name: date for same, date in zip(names, canonical, strict=False) for name in same.split("/")}


@cache
def _unit_names() -> dict[str, str]:
    return {name: names[0] for line in _UNITS.splitlines() if (names := line.split()) for name in names}


@cache
def _negation(language: Language) -> re.Pattern[str] | None:
    pattern = _NEGATION.get(language)
    return re.compile(pattern) if pattern else None
