r"""How scripts write words: which characters a word is made of, and which scripts put no blanks between them.

The classes are what stands between the brackets of a regular expression. ``\w`` of Python has letters and digits, but
not the marks that are written on them: the vowel signs of Hindi and Thai, points and accents that stand apart.
"""

from __future__ import annotations

import re
import unicodedata

# Marks of living scripts. A range may hold letters between the marks, but nothing that separates words.
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0898-\u08e1\u08e3-\u0963"
    "\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d"
    "\u0d57-\u0d63\u0d81-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ecd\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84"
    "\u0f86-\u0fbc\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u1734\u1752-\u17d3\u17dd\u180b-\u180d\u180f-\u193b"
    "\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1dc0-\u1dff\u20d0-\u20f0"
    "\u302a-\u302f\u3099\u309a\ua802-\ua827\ua880-\ua8c5\ua8e0-\ua8f1\ua926-\ua92d\ua947-\ua953\ua980-\ua9c0"
    "\ua9e5-\uaa4d\uaa7b-\uaac1\uaaeb-\uaaef\uabe3-\uabea\uabec\uabed\ufb1e\ufe00-\ufe0f\ufe20-\ufe2f"
)
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
HIRAGANA = "\u3041-\u3096\u309d-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
# Korean has blanks, but what a noun does in its sentence hangs on it without one: its words are cut as the others.
HANGUL = "\u1100-\u11ff\uac00-\ud7a3"
THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
LAO = "\u0e81-\u0ece\u0edc-\u0edf"
BURMESE = "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
KHMER = "\u1780-\u17d3\u17d7\u17dc\u17dd"
# Marks of the scripts without blanks, and no letter between them.
UNSPACED_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1060"
    "\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u302a-\u302f\u3099\u309a"
    "\ua980-\ua983\ua9b3-\ua9c0\u1b00-\u1b04\u1b34-\u1b44\u1a55-\u1a7f\uaab0\uaab2-\uaab4\uaab7\uaab8\uaabe\uaabf\uaac1"
)
# Tibetan has a mark behind each syllable, which separates them as a blank would.
TIBETAN = "\u0f40-\u0fbc"
DEVANAGARI = "\u0900-\u0963\u0970-\u097f"
# Others without blanks: Javanese, Balinese, Tai Le, New Tai Lue, Tai Tham, Tai Viet.
_OTHERS = "\ua980-\ua9c0\u1b00-\u1b4b\u1950-\u1974\u1980-\u19c9\u1a20-\u1a7f\uaa80-\uaadf"
UNSPACED = f"{HAN}{HIRAGANA}{KATAKANA}\u3100-\u312f{HANGUL}{THAI}{LAO}{BURMESE}{KHMER}{_OTHERS}"

# Nobody sees these, and they part no word: soft hyphens, joiners, marks of direction; the stretching of Arabic letters
# is seen and says nothing. A blank without a width parts words.
_INVISIBLE = dict.fromkeys(
    (0xAD, 0x0640, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
_INVISIBLE[0x200B] = 0x20
# Nothing that is written has so many; normalising a run of marks takes time quadratic in its length.
_LONGEST_RUN = 30
_LONG_RUN = re.compile(rf"([^\w\s]{{{_LONGEST_RUN}}})[^\w\s]+")


def folded(text: str) -> str:
    """Return the text in one form (NFKC), without characters that nobody sees. Takes time linear in its length.

    Of a long run of marks or signs only the beginning is kept.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", _LONG_RUN.sub(r"\1", text.translate(_INVISIBLE)))
