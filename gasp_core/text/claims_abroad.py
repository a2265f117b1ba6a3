"""The usual phrases of other languages than English that claim nothing; ``claims`` says what that is.

Texts are folded: "weiß" is "weiss", a full-width colon is a colon, "।" and "。" do not end them.
"""

from __future__ import annotations

from gasp_core.text.refusals import one_of

# Up to the end without another clause, and without a number: what has one may well say something.
_REST = r"\b[^;:\d]{0,150}$"
_ON = r"[^;:\d]{0,150}$"  # where a word may end in a vowel sign, and in scripts without blanks
_ANY = r"[^:;,]{1,200} ?:$"
_SUBJECT = r"[^:;,\d]{1,150}"

# German

_DE_MATERIAL = (
    r"(?:(?:bereitgestellten?|angegebenen?|vorliegenden?|gegebenen?|obigen?|genannten?|zur verfügung gestellten?) )?"
    r"(?:passagen|kontext(?:es)?|dokumenten?|quellen|textabschnitten?|textpassagen|auszügen?|informationen)"
)
_DE_SAY = (
    r"(?:enthält|enthalten|erwähnt|erwähnen|nennt|nennen|gibt|geben|sagt|sagen|beschreibt|beschreiben|liefert|liefern"
    r"|macht|machen|bietet|bieten|erklärt|erklären|erläutert|erläutern|geht|gehen)"
)
_DE_SAID = r"(?:erwähnt|genannt|angegeben|beschrieben|enthalten|aufgeführt|erläutert|spezifiziert|behandelt|erklärt)"
_DE_STEPS = r"(?:schritte|anweisungen|anleitung|methoden|tipps|hinweise|möglichkeiten|punkte)n?"
_DE_OPENING = (
    r"(?:natürlich|gern|gerne|klar|sicher|selbstverständlich|zusammenfassend|zusammengefasst|kurz gesagt|ausserdem"
    r"|zudem|daher|also|hinweis:|bitte beachten sie, dass)\b"
    rf"|(?:basierend auf|auf (?:der )?(?:basis|grundlage)(?: von)?|laut|gemäss|anhand|nach) (?:den |der |dem "
    rf"|des )?{_DE_MATERIAL}"
)
_GERMAN = one_of(
    rf"hier(?: ist| sind| finden sie| findest du| folgt| folgen|'s) {_ANY}",
    rf"(?:ist|sind|finden sie|findest du|folgt|folgen) (?:hier|im folgenden|nachfolgend) {_ANY}",
    rf"(?:im folgenden|nachfolgend|nachstehend|folgend)\b {_ANY}",
    rf"(?:um [^:;]{{1,150}}, )?(?:befolgen|folgen|gehen|führen|beachten|nutzen|können|sollten|befolge|folge) "
    rf"(?:sie )?"
    rf"(?:bitte |einfach |nach )?(?:diese|diesen|folgende|folgenden|den folgenden"
    rf"|die folgenden) {_DE_STEPS}\b[^:;,\d]{{0,60}}:$",
    rf"(?:die|der|das|einige|zu den|zu) {_SUBJECT} (?:ist|sind|lautet|lauten|umfasst|umfassen|gehören|zählen)"
    r"(?: folgende[nrs]?| wie folgt)?:$",
    rf"(?:die|der|das) {_SUBJECT} (?:ist|sind|lautet|lauten) wie folgt$",
    r"(?:zusammenfassung|antwort|hinweis|hinweise|anmerkung|zutaten|zubereitung|anleitung|schritte"
    r"|schritt \d{1,2}|fazit"
    r"|beispiel|beispiele|quellen?|tipps?|überblick|einleitung|erklärung|vorteile|nachteile|passagen? \d{1,2}):$",
    rf"(?:der|die|das) {_DE_MATERIAL} {_DE_SAY}\b[^;:\d]{{0,150}}\b(?:nicht|keine|keinen|keinerlei"
    rf"|nichts)\b[^;:\d]{{0,100}}$",
    rf"(?:in|aus) (?:den|dem|der) {_DE_MATERIAL} (?:wird|werden|ist|sind|steht|stehen|geht|findet sich"
    rf"|finden sich|gibt es)"
    rf"\b[^;:\d]{{0,150}}\b(?:nicht|keine|keinen|kein|keinerlei|nichts)\b[^;:\d]{{0,100}}$",
    rf"{_SUBJECT} (?:wird|werden|ist|sind) in (?:den|dem|der) {_DE_MATERIAL} nicht (?:explizit |ausdrücklich "
    rf"|näher )?{_DE_SAID}$",
    rf"ich hoffe,? (?:das|dies|diese|die|dass|ihnen|dir|es)\b[^;:\d]{{0,60}} (?:hilft|helfen|geholfen"
    rf"|hilfreich|weiter)\b{_REST}",
    rf"(?:lassen sie|lass) (?:es )?mich (?:gern |gerne |bitte )?wissen\b{_REST}",
    rf"(?:wenn|falls|sollten|solltest) (?:sie|du)\b[^;:\d]{{0,80}} (?:fragen|hilfe"
    rf"|informationen)\b[^;:\d]{{0,40}}, {_ON}",
    rf"(?:bei|für) (?:weiteren?|fragen|rückfragen)\b{_REST}",
    r"(?:zögern sie nicht|zögere nicht|melden sie sich|melde dich|fragen sie|frag)\b(?: bitte| gern| gerne"
    r"| einfach|,)"
    r"[^;:\d]{0,100}$",
    r"(?:kann|darf) ich (?:ihnen|dir) (?:sonst )?(?:noch )?(?:mit |bei )?[^;:\d]{0,40}(?:helfen|weiterhelfen)\?$",
    r"(?:möchten sie|möchtest du|haben sie|hast du|brauchen sie) (?:noch )?(?:mehr|weitere|noch"
    r"|andere)\b[^;:\d]{0,80}\?$",
    r"(?:gern|gerne) geschehen$|(?:viel (?:erfolg|spass|glück)|guten appetit|alles gute)\b[^;:,\d]{0,30}$",
    r"(?:vielen dank|danke) für (?:ihre|deine|die) (?:frage|anfrage|geduld)$",
)

# French

_FR_MATERIAL = (
    r"(?:contextes?|passages?|documents?|sources?|extraits?)(?: (?:fournie?s?|donnée?s?|ci-dessus|disponibles"
    r"|proposée?s?))?"
)
_FR_THE = r"(?:le|les|ces|ce|des|du|aux|au)"
_FR_OPENING = (
    r"(?:bien sûr|certainement|d'accord|en résumé|pour résumer|en bref|en conclusion|de plus|par ailleurs|ainsi|donc"
    r"|remarque ?:|notez que|veuillez noter que|il (?:est|convient) (?:important )?de noter que)\b"
    rf"|(?:d'après|selon|sur la base de|en se basant sur|en fonction de|à partir de|dans) {_FR_THE} {_FR_MATERIAL}\b"
    rf"|(?:sur la base|à partir) {_FR_THE} {_FR_MATERIAL}\b"
)
_FRENCH = one_of(
    rf"voici {_ANY}",
    r"(?:vous trouverez )?ci-(?:dessous|après)\b[^:;,]{0,150} ?:$",
    r"(?:pour [^:;]{1,150}, )?(?:suivez|suis|vous pouvez suivre|il faut suivre|procédez selon|utilisez) "
    r"(?:ces|les|cette|la)"
    r" (?:étapes|instructions|conseils|méthodes?|procédure|recette)\b[^:;,\d]{0,60} ?:$",
    rf"(?:les|le|la|l'|certains|certaines|parmi les) ?{_SUBJECT} (?:est|sont|comprennent|comprend|incluent"
    rf"|inclut|suivants?"
    r"|suivantes?|comme suit) ?:$",
    r"(?:résumé|réponse|remarques?|note|ingrédients|préparation|instructions|étapes?(?: \d{1,2})?|exemples?|sources?"
    r"|conseils?|introduction|conclusion|avantages|inconvénients|passages? \d{1,2}) ?:$",
    rf"(?:le|les|ces|aucun des) {_FR_MATERIAL} (?:ne |n')[a-zéèê]{{3,20}}(?:nt|t|e)? (?:pas|aucune?|rien)\b{_REST}",
    rf"{_SUBJECT} (?:n'est|ne sont|n'est pas) (?:pas )?(?:explicitement )?(?:mentionnée?s?|précisée?s?"
    rf"|indiquée?s?|spécifiée?s?"
    rf"|décrite?s?|abordée?s?) dans {_FR_THE} {_FR_MATERIAL}$",
    rf"j'espère que (?:cela|ça|ces|cette|ceci)\b[^;:\d]{{0,80}} ?(?:aide|aidera|aident|aideront|aidé|utiles?"
    rf"|répond)\b{_REST}",
    rf"n'hésite[sz]? pas (?:à|si)\b{_REST}",
    rf"(?:faites-moi savoir|dites-moi|fais-moi savoir|dis-moi) (?:si|comment)\b{_REST}",
    rf"si vous (?:avez|souhaitez|voulez|désirez)\b[^;:\d]{{0,80}}(?:questions?|aide|informations?"
    rf"|précisions?)\b[^;:\d]{{0,40}}, "
    rf"(?:n'hésitez|faites|je suis|dites){_ON}",
    r"(?:puis-je|est-ce que je peux) vous (?:aider|être utile)\b[^;:\d]{0,60}\?$",
    r"(?:souhaitez-vous|voulez-vous|avez-vous) (?:plus|d'autres|que je|davantage|autre)\b[^;:\d]{0,80}\?$",
    r"(?:y a-t-il autre chose)\b[^;:\d]{0,60}\?$",
    r"(?:bonne (?:chance|journée|dégustation|continuation)|bon (?:appétit|courage)|je vous en prie"
    r"|avec plaisir|de rien)$",
    r"merci (?:pour|de) (?:votre|ta|cette) (?:question|demande|patience)$",
)

# Spanish

_ES_MATERIAL = (
    r"(?:contextos?|pasajes?|documentos?|fuentes?|fragmentos?)(?: (?:proporcionad[oa]s?|dad[oa]s?|facilitad[oa]s?"
    r"|suministrad[oa]s?|anteriores))?"
)
_ES_OPENING = (
    r"(?:claro|claro que sí|por supuesto|desde luego|en resumen|para resumir|en conclusión|además|por lo tanto|así"
    r"|nota:|tenga en cuenta que|ten en cuenta que|cabe (?:señalar|destacar) que|es importante (?:señalar"
    r"|destacar) que)\b"
    r"|(?:según|de acuerdo con|con base en|en base a|basándo(?:me|nos|se) en|a partir de|sobre la base de|en) "
    rf"(?:el|los|las|estos|estas|dichos) {_ES_MATERIAL}\b"
)
_SPANISH = one_of(
    rf"aquí (?:está|están|tiene|tienes|te dejo|le dejo|te presento|le presento|hay|se muestran?"
    rf"|se presentan?) {_ANY}",
    rf"(?:a continuación|estos son|estas son|este es|esta es)\b {_ANY}",
    r"(?:para [^:;]{1,150}, )?(?:siga|sigue|siguen|sigan|puedes seguir|puede seguir|debes seguir|debe seguir"
    r"|utilice|usa)"
    r" (?:estos|estas|los siguientes|las siguientes|el siguiente|la siguiente) (?:pasos|instrucciones"
    r"|consejos|métodos?"
    r"|procedimiento|receta)\b[^:;,\d]{0,60}:$",
    rf"(?:los|las|el|la|algunos|algunas|entre los) {_SUBJECT} (?:es|son|incluyen|incluye|siguientes?|sigue)"
    rf"(?: (?:los|las|el"
    r"|la) siguientes?)?:$",
    r"(?:resumen|respuesta|nota|notas|ingredientes|preparación|instrucciones|pasos?(?: \d{1,2})?|ejemplos?|fuentes?"
    r"|consejos?|introducción|conclusión|ventajas|desventajas|por ejemplo|pasajes? \d{1,2}):$",
    rf"(?:el|los|las|estos|estas|ninguno de los) {_ES_MATERIAL} no [a-záéíóú]{{3,20}}\b{_REST}",
    rf"(?:no se|{_SUBJECT} no (?:se|está|están|es|son)) (?:menciona|especifica|indica|detalla|proporciona|mencionan"
    rf"|especifican|indican|mencionad[oa]s?|especificad[oa]s?|indicad[oa]s?)[^;:,\d]{{0,100}} en (?:el|los"
    rf"|las) {_ES_MATERIAL}$",
    rf"{_SUBJECT} no (?:se|está|están) (?:menciona|especifica|indica|detalla|mencionan|especifican|indican"
    rf"|mencionad[oa]s?"
    rf"|especificad[oa]s?|indicad[oa]s?) en (?:el|los|las) {_ES_MATERIAL}$",
    rf"espero que (?:esto|esta|estos|te|le|les|os|la)\b[^;:\d]{{0,60}}(?:ayude|ayuden|ayudado|sirva|sirvan"
    rf"|útil|utilidad)\b{_REST}",
    rf"no (?:dude|dudes|duden) en\b{_REST}",
    rf"(?:hágame|hazme|avísame|avíseme|déjame|déjeme|dime|dígame)(?: saber)? (?:si|cómo)\b{_REST}",
    rf"si (?:tiene|tienes|tienen|necesita|necesitas|quiere|quieres|desea|deseas)\b[^;:\d]{{0,80}}(?:preguntas?"
    rf"|dudas?|ayuda"
    rf"|información|más)\b[^;:\d]{{0,60}}, (?:no dud|hágame|hazme|avísame|estoy|dime|házmelo|puede|puedes){_ON}",
    r"(?:hay algo más|puedo ayudar(?:te|le)|en qué más|tienes? (?:más|alguna otra)|necesitas? (?:más"
    r"|algo))\b[^;:\d]{0,80}\?$",
    r"(?:te gustaría|le gustaría|quieres|quiere|desea|deseas) (?:que|saber|más)\b[^;:\d]{0,80}\?$",
    r"(?:de nada|buena suerte|mucha suerte|buen provecho|con gusto|un placer|que tengas? un buen día)$",
    r"gracias por (?:tu|su|la) (?:pregunta|consulta|paciencia)$",
)

# Italian, Portuguese, Dutch

_ITALIAN = one_of(
    rf"ecco {_ANY}|(?:di seguito|qui di seguito)\b {_ANY}",
    r"(?:per [^:;]{1,150}, )?(?:segui|segua|seguite|seguire|puoi seguire|può seguire) (?:questi|questa"
    r"|i seguenti|le seguenti)"
    r" (?:passaggi|passi|istruzioni|consigli)\b[^:;,\d]{0,60}:$",
    rf"(?:i|gli|le|il|la|lo|alcuni|alcune) {_SUBJECT} (?:è|sono|includono|include|seguenti)(?: (?:i|le|il"
    rf"|la) seguenti?)?:$",
    r"(?:riassunto|risposta|nota|ingredienti|preparazione|istruzioni|passaggi|esempio|fonti?|conclusione"
    r"|riepilogo):$",
    rf"(?:i|il|le|gli) (?:contesto|passaggi|brani|documenti|fonti)(?: (?:fornit"
    rf"|dat)[oie])? non [a-zàèéìòù]{{3,20}}\b{_REST}",
    rf"spero che (?:questo|queste|ti|le|vi|sia)\b[^;:\d]{{0,60}}(?:aiuti|aiutino|utile|utili|aiuto)\b{_REST}",
    rf"(?:non esit\w{{1,6}} a|fammi sapere|mi faccia sapere)\b{_REST}",
    rf"se (?:hai|ha|avete)\b[^;:\d]{{0,60}}(?:domande|bisogno|dubbi)\b[^;:\d]{{0,60}}, (?:non esit|fammi"
    rf"|mi faccia|chied|sono){_ON}",
    r"(?:posso aiutar\w{1,4}|c'è altro|vuoi|desidera)\b[^;:\d]{0,60}\?$",
    r"(?:prego|buona fortuna|buon appetito|buona giornata)$",
)
_PORTUGUESE = one_of(
    rf"aqui (?:está|estão|vai|vão|tem) {_ANY}|(?:a seguir|abaixo|estes são|estas são)\b {_ANY}",
    r"(?:para [^:;]{1,150}, )?(?:siga|você pode seguir|sigam) (?:estes|estas|os seguintes|as seguintes) "
    r"(?:passos|etapas"
    r"|instruções|dicas)\b[^:;,\d]{0,60}:$",
    rf"(?:os|as|o|a|alguns|algumas) {_SUBJECT} (?:é|são|incluem|inclui|seguintes?)(?: (?:os|as|o|a) seguintes?)?:$",
    r"(?:resumo|resposta|nota|observação|ingredientes|preparo|preparação|instruções|passos|exemplos?|fontes?"
    r"|conclusão"
    r"|dicas):$",
    rf"(?:os|o|as) (?:contexto|passagens|documentos|fontes|trechos)(?: (?:fornecid"
    rf"|dad)[oa]s?)? não [a-zàáâãéêíóôõúç]{{3,20}}"
    rf"\b{_REST}",
    rf"espero que (?:isso|isto|esta|estas|essas|tenha|te)\b[^;:\d]{{0,60}}(?:ajude|ajudem|ajudado|útil"
    rf"|úteis)\b{_REST}",
    rf"(?:não hesite em|sinta-se à vontade para|me avise|avise-me|fique à vontade para)\b{_REST}",
    rf"se (?:você )?(?:tiver|precisar|quiser)\b[^;:\d]{{0,80}}, (?:não hesite|me avise|sinta-se|é só|estou"
    rf"|fique){_ON}",
    r"(?:posso ajudar|há mais alguma coisa|gostaria|você quer|deseja)\b[^;:\d]{0,60}\?$",
    r"(?:de nada|boa sorte|bom apetite|tenha um bom dia)$",
)
_NL_MATERIAL = r"(?:(?:gegeven|verstrekte|aangeleverde) )?(?:context|passages|documenten|bronnen|fragmenten)"
_DUTCH = one_of(
    rf"hier (?:is|zijn|volgt|volgen|vindt u|vind je) {_ANY}|(?:hieronder|de volgende)\b {_ANY}",
    r"(?:om [^:;]{1,150}, )?(?:volg|volgt u|kunt u|kun je) (?:deze|de volgende) (?:stappen|instructies"
    r"|tips)\b[^:;,\d]{0,60}:$",
    rf"(?:de|het|enkele) {_SUBJECT} (?:is|zijn|omvat|omvatten|luidt|luiden)(?: als volgt| de volgende)?:$",
    r"(?:samenvatting|antwoord|opmerking|ingrediënten|bereiding|instructies|stappen|voorbeeld|bronn?en|bron"
    r"|conclusie):$",
    rf"(?:de|het|deze) {_NL_MATERIAL} [a-zë]{{3,20}}\b[^;:\d]{{0,150}}\b(?:niet|geen|niets)\b[^;:\d]{{0,100}}$",
    rf"ik hoop dat (?:dit|deze|het)\b[^;:\d]{{0,60}}(?:helpt|helpen|geholpen|nuttig|behulpzaam)\b{_REST}",
    rf"(?:laat (?:het )?me|aarzel niet om|stel gerust)\b{_REST}",
    rf"(?:als|mocht) (?:u|je)\b[^;:\d]{{0,80}}(?:vragen|hulp|informatie)\b[^;:\d]{{0,40}}, {_ON}",
    r"(?:kan ik (?:u|je)|wilt u|wil je|heeft u|heb je)\b[^;:\d]{0,80}(?:helpen|meer|nog)\b[^;:\d]{0,40}\?$",
    r"(?:graag gedaan|veel succes|eet smakelijk)$",
)

# Hindi

_HI_MATERIAL = (
    r"(?:(?:दिए|दिये) (?:गए|गये) |प्रदान (?:किए|किये) (?:गए|गये) |प्रदत्त |उपलब्ध |उपरोक्त |इन )?"
    r"(?:संदर्भ|अनुच्छेद|अनुच्छेदों|अंशों|दस्तावेज़|दस्तावेज|दस्तावेज़ों|दस्तावेजों|स्रोत|स्रोतों|गद्यांश|गद्यांशों)"
)
_HI_OPENING = (
    r"(?:ज़रूर|जरूर|बिल्कुल|अवश्य|संक्षेप में|इसके अलावा|इसलिए|नोट:|कृपया ध्यान दें कि|ध्यान दें कि)(?=[ ,!.:]|$)"
    rf"|{_HI_MATERIAL} के (?:अनुसार|आधार पर)"
)
_HINDI = one_of(
    r"(?:यहाँ|यहां|नीचे|निम्नलिखित|निम्न)(?: [^:;,]{1,150})? ?:-?$",
    r"(?:[^:;\d]{1,150} )?(?:निम्नलिखित|निम्न|इन) (?:चरणों|कदमों|निर्देशों|सुझावों) का (?:पालन|अनुसरण) "
    r"(?:करें|कीजिए|करना चाहिए|कर सकते हैं)(?: ?:-?)?$",
    r"[^:;,\d]{1,150} (?:इस प्रकार|निम्नलिखित|निम्न|निम्नानुसार|इस तरह|नीचे दिए गए|नीचे दी गई) (?:है|हैं)(?: ?:-?)?$",
    r"(?:यहाँ|यहां|नीचे) (?:इसका |उसका |आपका |एक |संक्षिप्त )?(?:सारांश|उत्तर|विवरण|सूची|चरण)(?: दिया गया| दिए गए"
    r"| दी गई)? (?:है|हैं)$",
    r"(?:सारांश|उत्तर|जवाब|नोट|सामग्री|विधि|निर्देश|चरण(?: \d{1,2})?|उदाहरण|स्रोत|निष्कर्ष|सुझाव) ?:-?$",
    rf"{_HI_MATERIAL} (?:में|से) [^;:\d]{{0,150}}(?:उल्लेख|जानकारी|विवरण|बताया|बताई|स्पष्ट|दिया|दी|कहा|वर्णन|सूचना"
    rf"|मिलता|मिलती)"
    r"(?: गया| गई| किया)? (?:नहीं)(?: [^;:\d ]{1,12}){0,3}$",
    rf"[^:;,\d]{{1,120}} का (?:{_HI_MATERIAL}) में (?:कोई )?(?:उल्लेख|विवरण|वर्णन) नहीं(?: [^;:\d ]{{1,12}}){{0,3}}$",
    r"(?:मुझे )?(?:आशा|उम्मीद) (?:है|करता हूँ|करता हूं|करती हूँ|करती हूं)(?:,? कि)? (?:यह|इससे|ये|इस)[^;:\d]{0,80}"
    rf"(?:मदद|सहायता|उपयोगी|सहायक|मददगार){_ON}",
    r"(?:यदि|अगर) (?:आपके|आपको|आपका|आप|कोई)[^;:\d]{0,100}(?:प्रश्न|सवाल|मदद|जानकारी|सहायता)[^;:\d]{0,60}"
    r"(?:पूछें|पूछ सकते हैं|पूछिए|बताएं|बताएँ|बताइए|संपर्क करें|संकोच न करें)$",
    r"क्या (?:मैं|आप|आपको|कुछ)[^;:\d]{0,80}(?:मदद|सहायता|और कुछ|और जानना|और जानकारी)[^;:\d]{0,60}\?$",
    r"(?:आपका )?(?:धन्यवाद|स्वागत है|शुभकामनाएँ|शुभकामनाएं)$|(?:आपके )?(?:प्रश्न|सवाल) के लिए धन्यवाद$",
)

# Japanese and Chinese, which have no blanks

_JA_MATERIAL = (
    r"(?:(?:ご?提供された|与えられた|提示された|上記の|これらの)(?:文脈|コンテキスト|文書|情報|資料|テキスト"
    r"|文章|パッセージ)"
    r"|パッセージ|コンテキスト|参考資料|参照文書)"
)
_JA_OPENING = (
    r"(?:はい、(?=以下|次|こちら)|もちろんです|もちろん|承知しました|かしこまりました|まとめると|要するに"
    r"|なお|また|ただし、?(?=提供|与え))"
    rf"|{_JA_MATERIAL}(?:に基づいて|に基づくと|に基づき|によると|によれば|をもとに|から)"
)
_JA_THING = r"(?:要約|まとめ|手順|回答|答え|説明|一覧|リスト|概要|方法|ポイント|情報|内容|例|ステップ)"
_JAPANESE = one_of(
    r"(?:[^;:。\d]{0,80}(?:は|を|が|には|について)、?)?(?:以下|次|下記)の(?:通り|とおり)(?:です|になります"
    r"|となります|でございます)?:?$",
    rf"(?:[^;:。\d]{{0,80}}(?:は|を|が|には)、?)?(?:以下|次|下記)の{_JA_THING}に(?:従って"
    rf"|沿って)[^;:。\d]{{0,20}}(?:ください|ましょう|ます):?$",
    rf"(?:以下|下記)(?:は|に|が|の)[^;:。、\d]{{0,80}}{_JA_THING}(?:です|を示します|をまとめます|を説明します"
    rf"|を紹介します"
    r"|をご紹介します|をまとめました|を記載します)?:?$",
    rf"(?:こちら|これ)(?:が|は)[^;:。、\d]{{0,60}}{_JA_THING}です:?$",
    rf"(?:以下|次|下記)[^;:。、\d]{{0,60}}:$|[^;:。、\d]{{0,30}}{_JA_THING}:$|(?:注意|注|備考|材料|作り方|結論"
    rf"|補足|出典|参考|例):$",
    rf"{_JA_MATERIAL}(?:に|には|の中に|では|内に|からは)[^;:。\d]{{0,120}}(?:記載|言及|説明|記述|明記|情報|示)"
    rf"(?:が|は|さ|され)?(?:て)?"
    r"(?:ありません|いません|おりません|ありませんでした|いない|ない)$",
    rf"{_JA_MATERIAL}(?:は|では)、?[^;:。\d]{{0,120}}(?:に言及|を説明|を記載|に触れ|を述べ)(?:し)?て"
    rf"(?:いません|おりません)$",
    rf"[^;:。\d]{{1,100}}(?:は|が|については|に関しては|に関する[^;:。\d]{{1,20}}は)、?{_JA_MATERIAL}(?:に"
    rf"|では|には|内に)(?:は)?"
    r"(?:記載|言及|明記|説明|記述)されて(?:いません|おりません)$",
    r"[^;:。\d]{0,40}(?:お役に立て|参考になれば|お力になれ|お役に立ち|助けになれば)[^;:。\d]{0,30}$",
    r"(?:他|ほか)に(?:も)?(?:何か)?[^;:。\d]{0,30}(?:質問|不明|知りたい|お手伝い|お困り)[^;:。\d]{0,40}"
    r"(?:ください|ませ|でしょうか|か)\??$",
    r"(?:何か)?(?:ご不明|ご質問|ご不明点|さらに)[^;:。\d]{0,60}(?:お知らせください|お尋ねください"
    r"|お聞きください|ご質問ください"
    r"|お問い合わせください|お申し付けください)$",
    r"(?:どうぞ|いつでも)?お気軽に[^;:。\d]{0,40}ください$|ご質問ありがとうございます$|どういたしまして$",
)
_ZH_MATERIAL = (
    r"(?:(?:这些|所|上述|以上)?(?:提供|给定|给出)的(?:上下文|段落|文章|资料|内容|信息|文档|材料|文本)|(?:这些"
    r"|上述)(?:段落|资料|文档|材料)|上下文)"
)
_ZH_OPENING = rf"(?:当然可以|当然|好的|没问题|总之|总结来说|此外|因此|请注意)|(?:根据|基于|依据){_ZH_MATERIAL}"
_CHINESE = one_of(
    r"(?:以下|下面)(?:是|为|列出|将)[^:;,\d]{0,100}(?:摘要|总结|步骤|回答|答案|概述|方法|列表|要点|说明|建议"
    r"|内容)?:$",
    r"(?:以下|下面)是[^:;,\d]{0,60}(?:摘要|总结|步骤|回答|答案|概述|列表|要点)$",
    r"[^:;,\d]{1,60}(?:如下|如下所示|包括|包括以下几点|是):$|(?:步骤|答案|方法|要点|内容)如下$",
    r"(?:总结|摘要|答案|回答|注意|注|说明|步骤|材料|做法|例如|结论|来源|参考|提示):$",
    rf"{_ZH_MATERIAL}(?:中|里)?(?:并)?(?:没有|未|不)(?:具体|明确|直接)?(?:包含|提及|提到|提供|涉及|说明|指出"
    rf"|给出|描述){_ON}",
    rf"[^:;,\d]{{1,60}}在{_ZH_MATERIAL}(?:中|里)(?:并)?(?:没有|未)(?:被)?(?:提及|提到|说明|指出|给出)$",
    r"希望(?:这|以上|对你|对您|能)[^;:\d]{0,40}(?:帮助|有用|有帮助|帮到)[^;:\d]{0,10}$",
    r"(?:如果|若|如)(?:您|你)?(?:还)?有?[^;:\d]{0,40}(?:问题|疑问|需要|帮助)[^;:\d]{0,40}(?:告诉我|提问"
    r"|联系我|问我|咨询)[^;:\d]{0,10}$",
    r"(?:还有什么|您还|你还|需要我)[^;:\d]{0,40}\?$|(?:不客气|祝您好运|祝你好运|感谢您的提问)$",
)

ABROAD = one_of(_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH, _HINDI, _JAPANESE, _CHINESE)
"""What is matched at the start of a sentence that claims nothing."""
OPENINGS_ABROAD = one_of(_DE_OPENING, _FR_OPENING, _ES_OPENING, _HI_OPENING, _JA_OPENING, _ZH_OPENING)
"""What may stand before it."""
