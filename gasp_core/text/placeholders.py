"""What programs and people write where there is nothing.

Words with one blank between them and without punctuation: ``n/a`` is ``n a``. What may as well be an answer, such as
``no``, ``unknown`` or a name, is not among them.
"""

from __future__ import annotations

import re
import unicodedata

_OF_PROGRAMS = (
    *("none", "null", "nil", "nan", "na", "n a", "n d", "undefined", "void", "empty", "missing", "not set"),
    *("no value", "blank", "object object", "pd na", "nothing", "nonetype", "empty string", "tbd"),
)

# Whatever a language calls it: nothing, no data, no result, not available, does not apply, empty.
_OF_PEOPLE = {
    "en": "no data|no content|no context|no text|no documents|no document|no passages|no results|no result|no matches|"
    "no information|no context available|no documents found|no results found|no data available|no context found|"
    "no relevant documents|no relevant documents found|no relevant context found|not available|not applicable|"
    "not found|no answer|no source|no sources|intentionally left blank|content unavailable|unavailable",
    "de": "keine|keiner|keines|keine angabe|keine angaben|k a|keine daten|keine ergebnisse|keine treffer|kein inhalt|"
    "kein text|keine dokumente|keine dokumente gefunden|nicht verfügbar|nicht vorhanden|nicht zutreffend|entfällt|"
    "leer|nichts|nichts gefunden|fehlt",
    "fr": "aucun|aucune|néant|vide|non disponible|indisponible|sans objet|s o|aucun résultat|aucune donnée|"
    "aucun document|aucun document trouvé|aucun contenu|pas de données|non applicable|rien|non renseigné",
    "es": "ninguno|ninguna|nulo|vacío|no disponible|no aplica|sin datos|sin resultados|sin contenido|sin documentos|"
    "no se encontraron documentos|no se encontraron resultados|nada|no encontrado|ningún resultado",
    "pt": "nenhum|nenhuma|nulo|vazio|não disponível|indisponível|não se aplica|sem dados|sem resultados|sem conteúdo|"
    "nenhum resultado|nenhum documento encontrado|nada",
    "it": "nessuno|nessuna|nullo|vuoto|non disponibile|non applicabile|nessun risultato|nessun dato|"
    "nessun documento|nessun documento trovato|nessun contenuto|niente",
    "nl": "geen|leeg|niet beschikbaar|n v t|niet van toepassing|geen gegevens|geen resultaten|geen documenten|"
    "geen inhoud|niets",
    "sv": "ingen|inget|saknas|tomt|ej tillgänglig|inte tillgänglig|inga resultat|inga data|inga dokument",
    "da": "ingen|intet|tomt|mangler|ikke tilgængelig|ingen resultater|ingen data|ingen dokumenter",
    "no": "ingen|ingenting|mangler|ikke tilgjengelig|ingen resultater|ingen dokumenter",
    "fi": "ei mitään|ei saatavilla|ei tietoja|ei tuloksia|tyhjä|puuttuu",
    "pl": "brak|brak danych|brak wyników|brak treści|brak dokumentów|puste|pusty|niedostępne|nie dotyczy",
    "cs": "žádný|žádná|žádné|prázdné|není k dispozici|nedostupné|žádné výsledky|žádná data",
    "hu": "nincs|nincs adat|nincs találat|üres|nem elérhető|semmi",
    "ro": "niciunul|nu este disponibil|indisponibil|fără date|niciun rezultat|nimic",
    "el": "κανένα|κενό|μη διαθέσιμο|δεν υπάρχουν δεδομένα|τίποτα",
    "tr": "yok|boş|mevcut değil|veri yok|sonuç yok|hiçbiri|uygulanamaz",
    "ru": "пусто|нет данных|нет результатов|нет документов|отсутствует|не указано|не найдено|недоступно|"
    "ничего не найдено|ничего|н д",
    "uk": "немає|немає даних|немає результатів|порожньо|відсутній|відсутня|недоступно|не знайдено|нічого",
    "ar": "لا يوجد|لا توجد|لا شيء|غير متوفر|غير متاح|فارغ|لا توجد بيانات|لا توجد نتائج|لا ينطبق",
    "he": "אין|ריק|לא זמין|אין נתונים|אין תוצאות|לא רלוונטי",
    "fa": "هیچ|خالی|موجود نیست|در دسترس نیست|بدون داده|بدون نتیجه",
    "hi": "कोई नहीं|कुछ नहीं|खाली|उपलब्ध नहीं|लागू नहीं|कोई डेटा नहीं|कोई परिणाम नहीं",
    "th": "ไม่มี|ไม่มีข้อมูล|ว่าง|ไม่พบข้อมูล|ไม่พบ",
    "vi": "không có|không có dữ liệu|không có kết quả|trống|không áp dụng",
    "id": "tidak ada|tidak ada data|tidak ada hasil|kosong|tidak tersedia|tidak berlaku",
    "ja": "なし|無し|該当なし|該当無し|データなし|データ無し|情報なし|結果なし|未設定|未入力|空文字|"
    "該当する文書はありません|該当する情報はありません|見つかりませんでした|利用不可",
    "zh": "无|無|没有|沒有|暂无|暫無|暂无数据|暫無資料|无数据|無資料|无内容|無內容|无结果|無結果|不适用|不適用|"
    "空白|空值|未找到|未找到相关内容|"
    "未找到相关文档|没有找到相关内容|不可用",
    "ko": "없음|해당 없음|해당없음|데이터 없음|결과 없음|내용 없음|비어 있음|찾을 수 없음|사용 불가",
}


_WORD = re.compile(r"[^\W_]+")


def bare_words(text: str) -> str:
    """The words of a short text as they are compared: without regard to case, width, marks and what nobody sees."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    seen = "".join(char for char in folded if unicodedata.category(char)[0] not in "CM")
    return " ".join(_WORD.findall(seen))


PLACEHOLDERS = frozenset(map(bare_words, [*_OF_PROGRAMS, *"|".join(_OF_PEOPLE.values()).split("|")]))
