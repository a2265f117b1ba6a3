"""Words of grammar by language: articles, pronouns, prepositions, conjunctions, auxiliaries, common adverbs.

They say nothing by themselves, and tell which language a text is in. Own lists. ``UNSUPPORTED`` has the commonest
words of languages that would be taken for another one without them.
"""

from __future__ import annotations

GRAMMAR_WORDS: dict[str, str] = {
    "en": """
a about above after again against all also am an and any are as at be because been before being below between
both but by can cannot could did do does doing down during each either else ever every few for from further had
has have having he hence her here hers him his how however i if in into is it its just may me might more most
must my neither no nor not of off often on once only or other our out over own per rather same shall she should
since so some such than that the their them then there therefore these they this those through thus to too under
until up upon very was we were what when where whether which while who whom whose why will with within without
would yet you your
don doesn didn isn aren wasn weren won wouldn couldn shouldn hasn haven hadn mustn needn shan mightn ain
""",
    "de": """
ab aber alle allem allen aller alles als also am an andere anderen anderer anderes auch auf aus bei beim bereits bevor
bin bis bist bzw da dabei dadurch dafür dagegen daher damit danach daneben dann daran darauf daraus darf darin darüber
das dass daß davon davor dazu dein deine dem den denen denn der deren derer des dessen deshalb die dies diese diesem
diesen dieser dieses doch dort du durch dürfen ein eine einem einen einer eines einige einigen einiger einmal er es
etwa etwas euch euer falls für gegen gewesen habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre
ihrem ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes jedoch jene jenem jenen jener jenes jetzt
kann kein keine keinem keinen keiner können könnte könnten man manche mehr mein meine mich mir mit möglich muss musste
müssen nach nachdem neben nein nicht nichts noch nun nur ob obwohl oder ohne sehr sein seine seinem seinen seiner
seines seit sich sie sind so sobald solche sollen sollte sollten sondern sonst sowie statt trotz über um und uns unser
unsere unter vom von vor während wann war waren warum was weder wegen weil welche welchem welchen welcher welches wenn
wer werde werden wie wieder will wir wird wo wobei wodurch wurde wurden würde würden zu zudem zum zur zwar zwischen
""",
    "fr": """
à afin ai ainsi alors après au aucun aucune aujourd aussi autre autres aux avait avaient avant avec avez avoir avons
ayant beaucoup c car ce ceci cela celle celles celui cependant ces cet cette ceux chaque chez ci comme comment d dans de
depuis des dès donc dont du elle elles en encore entre est et étaient était étant été être eu eux fait font il ils j
jamais je jusqu l la là laquelle le lequel les lesquels leur leurs lors lorsqu lorsque lui m ma mais malgré me même
mêmes mes moins mon n ne ni non nos notre nous on ont or ou où outre par parce parmi pas pendant peu peut peuvent plus
plusieurs plutôt pour pourquoi pourrait près puis puisqu puisque qu quand que quel quelle quelles quelqu quelque quels
qui quoi sa sans sauf se selon sera seront ses seulement si sinon soit son sont sous souvent sur ta tandis tant te tel
telle tels toi ton toujours tous tout toute toutefois toutes très tu un une vers via vos votre vous y
""",
    "es": """
a además ahora al algo algún alguna algunas alguno algunos allí ambos ante antes aquel aquella aquellos aquí así aún
aunque cada casi como cómo con contra cual cuál cuales cualquier cuando cuándo cuanto cuyo cuya de debe deben del desde
después donde dónde dos durante e el él ella ellas ellos en entonces entre era eran es esa esas ese eso esos esta está
están estas este esto estos estaba fue fueron ha había habían haber hace hacia han has hasta hay he incluso la las le
les lo los luego más me mediante mi mientras mis misma mismo mismos mucha muchas mucho muchos muy nada ni ningún
ninguna ninguno no nos nosotros nuestra nuestro o os otra otras otro otros para pero poco por porque pues puede pueden
que qué quien quién quienes se sea según ser será sí si sido siempre sin sino sobre solo sólo son su sus también tampoco
tan tanto te tener tiene tienen toda todas todavía todo todos tras tu tus un una unas uno unos usted ustedes y ya yo
""",
    "it": """
a abbia ad affinché agli ai al alcuni alcuna alcune all alla alle allo allora altra altre altri altro anche ancora
anzi avere aveva avevano c che chi ci ciò cioè coi col come con contro cosa così cui d da dagli dai dal dall dalla dalle
dallo degli dei del dell della delle dello dentro di dopo dove due dunque durante e è ed egli ella erano era essa esse
essere essi esso fa fino fra furono fu già gli ha hanno ho i il in infatti inoltre invece io l la là le lei li lo loro
ma mai me meno mentre mi mia mio molta molte molti molto ne né negli nei nel nell nella nelle nello nessun nessuna
nessuno nei noi non nostra nostro o ogni ognuno oltre oppure ora per perché perciò però più poi poiché prima proprio può
possono pur qual quale quali qualche quando quanto quasi quella quelle quelli quello questa queste questi questo qui
quindi s sarà saranno se secondo sei sempre senza sia siano si solo sono sopra soprattutto sotto stata state stati stato
su sua sue sugli sui sul sull sulla sulle suo suoi tale tali tanto tra tu tua tuo tuttavia tutta tutte tutti tutto un
una uno v vi viene vengono voi
""",
    "pt": """
a à ainda além algo alguém algum alguma algumas alguns ali ante antes ao aos apenas após aquela aquele aqueles aquilo as
às até cada com como contra contudo da daquele das de dela dele deles depois desde dessa desse desta deste deve devem do
dos durante e é ela elas ele eles em embora enquanto então entre era eram essa essas esse esses esta está estão estas
este estes eu foi foram há isso isto já lhe lhes logo mais mas me mediante meio menos mesma mesmo meu minha muita muitas
muito muitos na nada não nas nem nenhum nenhuma nessa nesse nesta neste ninguém no nos nossa nosso num numa o onde os ou
outra outras outro outros para pela pelas pelo pelos pode podem pois por porém porque portanto pouco qual quais qualquer
quando quanto quase que quem são se sem sempre sendo ser será seu seus si sido sob sobre sua suas também tal tão tem têm
ter tinha toda todas todavia todo todos tu tudo um uma umas uns você vocês
""",
    "nl": """
aan achter al alle alleen als altijd andere anders ben bij binnen boven buiten daar daarom dan dat de deze die
dit doch doen door dus een eens elk elke en er ervan even gaan gaat geen geweest had hadden heb hebben heeft hem
het hier hierdoor hij hoe hun iemand iets ik in indien is ja je jij jouw kan kon konden kunnen maar mag me meer
men met mij mijn moet moeten mogen na naar naast nadat nee niet niets nog nu of om omdat onder ons onze ook op
over per reeds samen sinds slechts sommige steeds te tegen terwijl tijdens toch toen tot tussen u uit uw van
vanaf veel vele verder via volgens voor vooral voordat waar waarbij waardoor waarom waren was wat we wel welke
werd werden wie wij wil worden wordt zal ze zeer zelf zich zij zijn zo zoals zodat zou zouden zonder
""",
    "hi": """
अगर अत अथवा अपना अपनी अपने अब आदि आप इन इनका इनकी इनके इस इसका इसकी इसके इसमें इसलिए इसी इसे उन उनका उनकी उनके उन्हें
उस उसका उसकी उसके उसमें उसी उसे एक एवं ऐसा ऐसी ऐसे और कई कब कभी कर करता करती करते करना करने करें का कि किंतु कितना
किन किया किस किसी की के को कोई कौन क्या क्यों क्योंकि गई गए गया गयी चाहिए जब जबकि जहाँ जा जाता जाती जाते जाना जाने
जिन जिस जिसका जिसकी जिसके जिसमें जिसे जैसा जैसे जो तक तथा तब तरह तो था थी थे दिया दी दे द्वारा दोनों न नहीं ना ने पर
परंतु प्रति फिर बल्कि बहुत बाद बारे बिना भी मगर मैं में यदि यह यहाँ यही या ये रहा रही रहे लिए लिया लेकिन व वह वहाँ वही
वाला वाली वाले वे सकता सकती सकते सब सभी साथ से हम हर ही हुआ हुई हुए हूँ है हैं हो होता होती होते होना होने
""",
    "bo": """
གི ཀྱི གྱི འི ཡི གིས ཀྱིས གྱིས ཡིས ནི དང ལ ན ནས ལས སུ ཏུ དུ རུ ར
ཡིན རེད འདུག ཡོད མེད མིན ཅིང ཞིང ཤིང དེ འདི དག རྣམས ཀྱང ཡང འང པའི བའི པ བ
""",
}

UNSUPPORTED: dict[str, str] = {
    "sv": "och att det är som en på för av med till den har inte om ett men var jag sig från vi så kan nu när eller ut",
    "da": "og at det er en på for af med til den har ikke om et men var jeg sig fra vi så kan nu når eller som de blev",
    "no": "og å det er som en på for av med til den har ikke om et men var jeg seg fra vi så kan nå når eller ble",
    "ca": "el la els les de del dels i a amb per en que una un és són va al als o però no com més ha es l d aquest",
    "gl": "o a os as de do da dos das e en no na nos nas un unha que é son non con por para pero máis como foi ao á",
    "ro": "și de la în a cu pe pentru că este nu o un din mai sunt care ca au fost fi sau ce prin se el ea lui al ale",
    "pl": "i w na z do nie się że jest to o a jak po od za przez ale co dla był oraz są tym może ich tylko która który",
    "cs": "a se v na je že s z do to o k i za by ale jako pro po od si které který jsou byl není také jeho ve podle",
    "tr": "ve bir bu için ile de da olarak çok daha olan en gibi ancak kadar sonra ne o ki mi değil her ya veya olduğu",
    "id": "yang dan di dengan untuk dari dalam ini itu pada tidak ke adalah oleh akan atau juga sebagai ada dapat bisa",
    "fi": "ja on ei se että oli hän mutta joka ovat myös kun niin tai kuin jos mukaan sekä olla vain nyt ole siitä",
    "hu": "a az és hogy nem egy is van de ez ha csak meg már mint volt még vagy ki el azt kell lehet mert szerint",
    "vi": "và của là có được cho trong với không một những các người này đã khi đến từ ở để cũng như ra về",
    "af": "die en van in is het nie dat met vir op te sy wat om ook aan word was by hy hulle maar as deur kan een",
    "mr": "आहे आणि या हे व ते की होते तर एक मध्ये आहेत होता येथे त्या पण साठी असे केली नाही होती झाले केले त्यांनी च्या",
    "ne": "छ र को मा यो हो भएको छन् लागि थियो गरेको पनि ले भने तर एक हुन् बाट नै गर्न तथा गरी हुने रहेको छैन",
    "sa": "च अस्ति न एव तु इति हि तस्य सः तत् अपि वा यत् अत्र भवति सन्ति तथा किम्",
}
