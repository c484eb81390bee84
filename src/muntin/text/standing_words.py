"""Words of standing rules by language; used by `standing`."""
# ruff: noqa: E501 - a line is one group of words

from __future__ import annotations

from typing import NamedTuple

__all__ = (
    "ENGLISH_COMMAND",
    "ENGLISH_GUARDED",
    "ENGLISH_LASTING",
    "ENGLISH_SIGNS",
    "LANGUAGES",
    "UNSPACED",
    "Language",
)


class Language(NamedTuple):
    """The words of one language, as alternatives of an expression."""

    signs: str
    """Words without which a text holds no rule in this language."""
    lasting: str
    commands: str = r"(?!)"
    """Always and never."""
    guarded: str = r"(?!)"
    """A prohibition with an exception."""
    others: str = r"(?!)"
    """Subjects other than the reader: the sentence reports something."""
    please: str = r"(?!)"


LANGUAGES = (
    Language(  # German
        "jetzt sofort nun heute künftig zukünftig fortan rest weiteres verlauf immer jedesmal mal wann stets grundsätzlich ausschließlich nie niemals keinesfalls fall umständen ohne außer denn bevor solange bis hier",
        r"ab (?:jetzt|sofort|heute|nun|hier)|von (?:jetzt|nun|hier|heute) an|künftig|zukünftig|"
        r"fortan|für den rest|bis auf weiteres|im weiteren verlauf|immer,? wenn (?:du|sie)|"
        r"jedes ?mal,? wenn (?:du|sie)|wann immer",
        r"immer|stets|grundsätzlich|ausschließlich|nie|niemals|nie wieder|keinesfalls|"
        r"auf keinen fall|unter keinen umständen",
        r"\b(?:nicht|nichts|kein\w*)\b.*\b(?:ohne|außer|es sei denn|bevor ich|solange ich|bis ich)",
        r"ich|wir|er|es|man|hatte|war|waren|habe|haben",
        r"bitte",
    ),
    Language(  # French
        "partir dorénavant désormais l'avenir avenir reste suite ordre dès chaque toujours jamais systématiquement aucun prétexte sauf moins sans avant",
        r"(?:à|a) partir de (?:maintenant|là|aujourd'hui|ce moment)|dorénavant|désormais|"
        r"à l'avenir|pour (?:le reste|toute la suite)|jusqu'à nouvel ordre|dès (?:maintenant|à "
        r"présent|lors)|(?:à )?chaque fois que (?:tu|vous)|par la suite",
        r"toujours|jamais|systématiquement|en aucun cas|sous aucun prétexte",
        r"\b(?:ne|n'|pas)\b.*\b(?:sauf si|à moins que|sans (?:me|mon|que|avoir)|avant que je)",
        r"je|j'ai|l'ai|il|elle|on|nous|ils|elles",
        r"s'il (?:te|vous) plaît|merci de|veuillez|prière de",
    ),
    Language(  # Spanish
        "partir adelante desde sucesivo resto aviso cada toda siempre nunca jamás circunstancia caso menos salvo excepto sin hasta",
        r"a partir de (?:ahora|hoy|aquí|este momento)|de (?:ahora|aquí) en adelante|desde ahora|"
        r"en (?:adelante|lo sucesivo)|(?:por|durante|para) el resto|hasta nuevo aviso|"
        r"(?:cada|toda) vez que (?:tú|usted|me|escribas|respondas|menciones|hables|uses)",
        r"siempre|nunca|jamás|bajo ninguna circunstancia|en ningún caso",
        r"\bno\b.*\b(?:a menos que|salvo que|excepto si|sin (?:preguntar|mi |que yo|antes)|"
        r"hasta que (?:yo|te))",
        r"yo|él|ella|nosotros|ellos|ellas|he|hemos|je|j'ai|l'ai|elle|nous|eu|ele|ela",
        r"por favor",
    ),
    Language(  # Portuguese
        "partir diante daqui doravante resto ordem cada toda sempre nunca jamais hipótese forma menos salvo sem até frente",
        r"a partir de (?:agora|hoje|aqui|este momento)|(?:de agora|daqui) (?:em diante|para a "
        r"frente|pra frente|por diante)|doravante|(?:pelo|para o|no) resto d|até segunda ordem|"
        r"(?:cada|toda) vez que (?:você|tu|citar|mencionar|responder|escrever|usar)",
        r"sempre|nunca|jamais|em hipótese alguma|de forma alguma",
        r"\bnão\b.*\b(?:a menos que|a não ser que|salvo se|sem (?:me|minha|perguntar|antes)|até eu)",
        r"eu|ele|ela|nós|eles|elas|je|j'ai|l'ai|elle|nous|yo|él|ella",
        r"por favor",
    ),
    Language(  # Italian
        "d'ora ora adesso partire futuro resto ordine ogni sempre mai caso motivo meno senza finché qui oggi",
        r"d'ora (?:in poi|in avanti|innanzi)|da (?:ora|adesso|qui|oggi) in (?:poi|avanti)|"
        r"a partire da (?:ora|adesso|oggi)|in futuro|per (?:il resto|tutto il resto)|"
        r"fino a nuovo ordine|ogni volta che (?:tu|citi|nomini|rispondi|scrivi|usi|menzioni)",
        r"sempre|mai|in nessun caso|per nessun motivo",
        r"\bnon\b.*\b(?:a meno che|senza (?:chieder|il mio|che io|prima)|finché (?:io|non te))",
        r"io|lui|lei|noi|loro|ho|abbiamo",
        r"per favore|per piacere",
    ),
    Language(  # Dutch
        "vanaf voortaan vervolg rest nader telkens keer altijd nooit geval beding tenzij zonder totdat af",
        r"vanaf (?:nu|vandaag|hier)|voortaan|van nu af aan|in het vervolg|voor de rest van|"
        r"tot nader order|(?:telkens|elke keer) (?:als|wanneer) (?:je|u)",
        r"altijd|nooit|in geen geval|onder geen beding",
        r"\b(?:niet|geen)\b.*\b(?:tenzij|zonder (?:mij|me|mijn|te vragen|eerst)|totdat ik)",
        r"ik|wij|we|hij|zij|men",
        r"alsjeblieft|alstublieft|graag",
    ),
    Language(  # Swedish, Danish, Norwegian
        "nu nå hädanefter framöver fortsättningen heretter fremover resten alltid altid aldrig aldri utan uden uten mindre medmindre förrän før om",
        r"från (?:och med )?nu|hädanefter|framöver|i fortsättningen|fra nå av|heretter|fremover|"
        r"fra nu af|(?:för )?resten av (?:samtalet|samtalen|konversationen)|resten af samtalen|"
        r"fra og med nå|fra og med nu|for resten av",
        r"alltid|altid|aldrig|aldri",
        r"\b(?:inte|ikke)\b.*\b(?:om inte jag|om jag inte|utan att|uden at|uten å|med mindre|"
        r"medmindre|förrän jag|før jeg)",
        r"jag|jeg|vi|han|hon|hun|de",
        r"snälla|vänligen|vennligst|venligst",
    ),
    Language(  # Finnish
        "lähtien eteenpäin alkaen jatkossa vastedes edes aina koskaan ikinä ellei ennen ilman",
        r"tästä (?:lähtien|eteenpäin|alkaen)|jatkossa|vastedes|tästä edes|aina kun",
        r"aina|koskaan|ikinä",
        r"\bälä\b.*\b(?:ellei|ennen kuin|ilman)",
        r"minä|me|hän|he",
    ),
    Language(  # Polish
        "teraz odtąd pory chwili dziś przyszłości końca razem przyszłość zawsze nigdy pozorem razie wypadku chyba bez dopóki zanim",
        r"od teraz|odtąd|od tej (?:pory|chwili)|od dziś|w przyszłości|do końca (?:tej )?rozmowy|"
        r"za każdym razem,? (?:gdy|kiedy)|na przyszłość",
        r"zawsze|nigdy|pod żadnym pozorem|w żadnym (?:razie|wypadku)",
        r"\bnie\b.*\b(?:chyba że|bez (?:mojej|mojego|pytania)|dopóki (?:nie|ci)|zanim)",
        r"ja|my|on|ona|oni",
        r"proszę",
    ),
    Language(  # Czech and Slovak
        "teď teraz nynějška chvíle odteď odteraz nadále naďalej napříště konce vždy vždycky pokaždé nikdy případě pokud ledaže bez dokud",
        r"od (?:teď|teraz|nynějška|této chvíle)|odteď|odteraz|nadále|naďalej|napříště|"
        r"do konce (?:této )?(?:konverzace|rozhovoru)",
        r"vždy|vždycky|pokaždé|nikdy|v žádném případě",
        r"\bne\w*\b.*\b(?:pokud (?:ti|vám|tě)|ledaže|bez (?:mého|dotazu)|dokud)",
        r"já|my|on|ona|oni",
        r"prosím",
    ),
    Language(  # Russian
        "момента отныне впредь сегодняшнего дальнейшем начиная конца когда теперь всегда никогда коем ни если без пока",
        r"с этого момента|отныне|впредь|с сегодняшнего дня|в дальнейшем|начиная с этого|"
        r"до конца (?:этого )?(?:разговора|беседы|диалога)|каждый раз,? когда|теперь всегда",
        r"всегда|никогда|ни в коем случае|ни при каких",
        r"\bне\b.*(?:если (?:только )?я не|без (?:моего|моей|спроса|разрешения)|пока я)",
        r"я|мы|он|она|они|было|был",
        r"пожалуйста|прошу",
    ),
    Language(  # Ukrainian
        "відтепер віднині надалі моменту часу кінця щоразу завжди ніколи жодному якщо без доки поки",
        r"відтепер|віднині|надалі|з цього (?:моменту|часу)|до кінця (?:цієї )?розмови|щоразу,? коли",
        r"завжди|ніколи|в жодному разі",
        r"\bне\b.*(?:якщо я не|без (?:мого|моєї|дозволу)|доки я|поки я)",
        r"я|ми|він|вона|вони",
        r"будь ласка|прошу",
    ),
    Language(  # Turkish
        "bundan andan şimdiden bugünden konuşmanın seferinde zaman daima asla hiçbir sakın ben sormadan izni̇m iznim",
        r"bundan (?:sonra|böyle)|şu andan itibaren|şimdiden sonra|bu andan itibaren|bugünden "
        r"itibaren|konuşmanın (?:geri kalanında|sonuna kadar)|her seferinde",
        r"her zaman|daima|asla|hiçbir zaman|sakın",
        r"(?:ben .*(?:medikçe|madıkça|meden|madan)|bana sormadan|iznim olmadan)",
        r"ben|biz|onlar",
        r"lütfen",
    ),
    Language(  # Greek
        "πέρα εξής μπρος εφεξής υπόλοιπο πάντα πάντοτε ποτέ περίπτωση εκτός χωρίς αν",
        r"από (?:εδώ|τώρα|σήμερα) και (?:πέρα|στο εξής|μπρος)|στο εξής|εφεξής|για το υπόλοιπο",
        r"πάντα|πάντοτε|ποτέ|σε καμία περίπτωση",
        r"\bμην?\b.*(?:εκτός (?:αν|κι αν)|χωρίς να|αν δεν σου)",
        r"εγώ|εμείς|αυτός|αυτή",
        r"παρακαλώ",
    ),
    Language(  # Romanian
        "acum viitor restul întotdeauna mereu niciodată caz decât fără până",
        r"de acum (?:înainte|încolo)|începând de acum|pe viitor|pentru restul|de acum în colo",
        r"întotdeauna|mereu|niciodată|în niciun caz",
        r"\bnu\b.*\b(?:decât dacă|fără să|până (?:nu|când) (?:îți|eu))",
        r"eu|noi|el|ea|ei",
        r"te rog|vă rog",
    ),
    Language(  # Hungarian
        "mostantól ezentúl innentől továbbiakban jövőben beszélgetés mindig soha sose semmilyen semmiképp hacsak amíg anélkül",
        r"mostantól|ezentúl|innentől|a továbbiakban|a jövőben|a beszélgetés (?:hátralévő|végéig)",
        r"mindig|soha|sose|semmi(?:lyen|képp)",
        r"\bne\b.*\b(?:hacsak|amíg (?:nem|én)|anélkül)",
        r"én|mi|ő|ők",
        r"kérlek|kérem",
    ),
    Language(  # Indonesian and Malay
        "sekarang ini kini seterusnya selanjutnya setiap selalu jangan",
        r"(?:mulai|sejak|dari) (?:dari )?(?:sekarang|saat ini|hari ini|kini)|seterusnya|"
        r"untuk (?:selanjutnya|seterusnya)|selanjutnya,|setiap kali (?:anda|kamu|menyebut)",
        r"selalu|jangan pernah|sama sekali jangan",
        r"\bjangan\b.*\b(?:kecuali|tanpa (?:izin|bertanya|seizin)|sebelum (?:saya|aku))",
        r"saya|aku|kami|dia|mereka",
        r"tolong|mohon|harap",
    ),
    Language(  # Vietnamese
        "nay giờ đây sau mỗi hết luôn bao tuyệt trừ chưa cho",
        r"(?:kể )?từ (?:bây giờ|nay|giờ|đây)(?: trở đi| về sau)?|sau này|mỗi khi (?:bạn|anh|em)|"
        r"cho đến hết cuộc",
        r"luôn luôn|luôn|không bao giờ|đừng bao giờ|tuyệt đối không",
        r"\b(?:đừng|không được)\b.*\b(?:trừ khi|nếu (?:tôi )?chưa|khi chưa|cho đến khi)",
        r"tôi|chúng tôi|anh ấy|cô ấy|họ",
        r"hãy|xin|vui lòng|làm ơn",
    ),
)
"""Languages that write words apart; looked for in small letters, between word boundaries."""

ENGLISH_SIGNS = (
    "never always whenever ever unless without until only circumstances again anymore more time "
    "before answer answers reply replies respond response responses message messages speak talk "
    "write call address keep all every each any now here point moment today forward henceforth "
    "hereafter hereinafter notice otherwise conversation chat session thread discussion dialogue "
    "rest remainder immediately permanently occasion account anytime"
)
ENGLISH_LASTING = (
    r"from (?:now|here|today|this (?:point|moment|message)|that point) (?:on(?:wards?)?|forward|out)"
    r"|going forward|moving forward|henceforth|hereafter|hereinafter|until further notice|"
    r"until i (?:say|tell you) otherwise|unless i (?:say|tell you) otherwise|"
    r"(?:for|throughout|during) (?:the (?:rest|remainder) of )?(?:this|the|our) (?:whole |entire )?"
    r"(?:conversation|chat|session|thread|discussion|dialogue)|for the (?:rest|remainder) of "
    r"(?:the|this|our|your) \w+|(?:in|for|with) (?:all|every|each|any)(?: of)?(?: your| the)?"
    r"(?: future| later| following| subsequent| further| next)? (?:answers?|repl(?:y|ies)|"
    r"responses?|messages?|turns?|outputs?)|starting (?:now|today|immediately)|as of now|"
    r"effective immediately|permanently|any ?more from me|every single time|"
    r"(?:all|every) (?:future|later|following|subsequent) \w+"
)
_FILLER = (
    r"(?:(?:and|also|but|so|then|oh|ok|okay|hey|hi|hello|again|please|pls|kindly|remember|"
    r"important|note|nb|ps|p\.s|reminder|rule|btw|by the way|one (?:more )?(?:thing|rule|request)|"
    r"another thing|last thing|above all|first of all|most importantly|additionally|furthermore|"
    r"to be clear|just|thanks|thank you)[\s,.:;!–—-]+)*"
)
ENGLISH_COMMAND = (
    rf"^\W*{_FILLER}(?:"
    # never / always + a verb in its plain form
    r"(?:never|always)(?: ever)? (?!mind\b|heard\b|been\b|seen\b|had\b|thought\b|knew\b|again\b|"
    r"a\b|an\b|the\b|good\b|nice\b|great\b|happy\b|glad\b|in\b|on\b|at\b|wanted\b|liked\b|was\b|"
    r"were\b|is\b|are\b|did\b|does\b|has\b|got\b|went\b|came\b|said\b|told\b|\w+ed\b|\w+ing\b)[a-z]+"
    r"|(?:don'?t|don’t|do not) ever (?:again )?[a-z]+"
    r"|(?:under no circumstances|at no (?:time|point)|in no case|on no account)\b"
    r"|only ever [a-z]+"
    r"|only (?:answer|reply|respond|write|use|speak|output|return|quote|cite|give|show|send|call|"
    r"refer|talk|work|edit|change|touch|read|mention)\b"
    r"|(?:whenever|every time|each time|any ?time|if ever) (?:you|i|we)\b"
    r"|(?:you|i want you to|i'd like you to|i need you to|make sure (?:you|to)|be sure (?:you|to)|"
    r"remember to|you (?:must|should|are to|have to|need to|may|can)) (?:always|never|only ever|"
    r"at all times)\b"
    r"|(?:answer|reply|respond|speak|talk|write)(?: to me| back)?(?: only| exclusively)? in "
    r"(?!the\b|a\b|an\b|this\b|that\b|your\b|my\b|detail\b|full\b|case\b|order\b|time\b|turn\b)"
    r"[a-z]{3,}(?: only)?\W*$"
    r"|(?:call|address) me (?:as )?\w+"
    r"|(?:ask|check with|confirm with|warn|tell) me (?:first )?before (?:you|any|each|every)\b"
    r"|keep (?:all|every|each|any|your) (?:answers?|repl(?:y|ies)|responses?|messages?|summar\w+|"
    r"explanations?|sentences?|paragraphs?)\b"
    r"|(?:use|give|write|state|show|express|quote|add|include|put|format|mark|sign|end|start|begin|"
    r"spell|round|list|name|cite|avoid|stick to|prefer|report)\b.*\b(?:for|in|on|with|to|of|at|"
    r"after|before) (?:all|every|each|any)\b"
    r"|(?:end|start|begin|sign|finish|open|close) (?:all|every|each|any)\b"
    r")"
)
ENGLISH_GUARDED = (
    rf"^\W*{_FILLER}(?:don'?t|don’t|do not|never|avoid|refrain from|no)\b.*\b(?:unless|without "
    r"(?:asking|my|checking|telling|confirm\w*|first|explicit|permission|approval)|until i\b|"
    r"before (?:i|asking|checking)\b|ever\b|any ?more\b|again\b|at all\b|under any)"
)

UNSPACED = (
    # Chinese
    r"从(?:现在|今天|今|这里|此刻|此)(?:开始|起|以后|往后|之后)|自(?:此|现在|今)(?:以后|起|之后)|今后|往后|此后|"
    r"以后(?:都|请|一律|不要|别|每|所有|只|也|就|凡|回|用|的)|接下来(?:的)?(?:所有|整个|对话|每)|"
    r"(?:剩下|余下|之后)的(?:对话|聊天|会话)|(?:整个|本次)(?:对话|会话)(?:中|里|都)|"
    r"(?:請|请|务必|務必|一定要|必须|必須)[^。！？，,]{0,8}(?:始终|總是|总是|一直|一律|每次|永远|永遠|都)|"
    r"(?:始终|總是|总是|一律|永远|永遠|每次|每当|每當)[^。！？]{0,20}(?:请|請|要|必须|必須|不要|别|別|用|使用|写|标)|"
    r"(?:永远|永遠|绝对|絕對|千万|千萬|绝|絕)(?:不要|别|別|不可|不能|不得|勿)|切勿|"
    r"(?:不要|别|別|不得|不可|不准|请勿|請勿|禁止)[^。！？]{0,40}(?:除非|再|未经|未經|没有我|沒有我)|"
    r"(?:除非我|未经我|未經我|没有我的|沒有我的|在我)[^。！？]{0,30}(?:不要|别|別|不得|不可|不准|请勿|請勿|禁止)|"
    r"從(?:現在|今天|今|這裡|此刻)(?:開始|起|以後|往後|之後)|今後|以後(?:都|請|一律|不要|別|每|所有|只|也)|"
    # Japanese
    r"今後|(?:これ|今|ここ)から(?:は|先|の|、|ずっと)|これ以降|以降は|この(?:会話|チャット|先)の?(?:残り|間|ずっと|は)|"
    r"(?:常に|必ず|いつも|毎回|絶対に?|決して|二度と)[^。！？]{0,40}(?:ください|下さい|こと|禁止|ように|てくれ|"
    r"ないで|な[。！]?$|ません|てね|て[。！]?$)|"
    r"(?:しない限り|許可なく|確認なしに|聞かずに|断りなく|指示がない限り|頼むまで|言うまで)[^。！？]{0,40}"
    r"(?:ないで|ください|禁止|こと|ません)|"
    r"(?:する|した|くる|書く|答える|出す)(?:とき|時|際|たび|度)(?:に)?は?[^。！？]{0,40}(?:必ず|常に|毎回)|"
    # Korean
    r"앞으로(?:는|도|의|모든)?\s|지금부터|이제부터|이후로|(?:남은|나머지) 대화|대화 내내|"
    r"(?:항상|언제나|늘|반드시|매번|절대|결코|다시는)[^.!?]{0,60}(?:세요|십시오|마라|말 것|할 것|하지 마|해 ?줘|"
    r"주라|말아|해라|써라|마세요)|"
    r"(?:때마다|경우 항상)[^.!?]{0,60}(?:세요|십시오|해 ?줘|할 것)|"
    r"(?:허락 없이|묻지 않고|확인 없이|말하기 전까지|요청하지 않는 한|물어보지 않고)[^.!?]{0,60}(?:마|말|금지)|"
    # Thai
    r"(?:ต่อ|นับ|ตั้งแต่|หลัง)?(?:จาก)?นี้(?:เป็นต้น)?ไป|ตั้งแต่(?:บัดนี้|ตอนนี้)|ตลอด(?:การสนทนา|บทสนทนา)|"
    r"(?:กรุณา|โปรด|ช่วย|ต้อง)[^\n]{0,80}(?:เสมอ|ทุกครั้ง|ตลอด)|ทุกครั้งที่|(?:ห้าม|อย่า)[^\n]{0,60}"
    r"(?:เด็ดขาด|เว้นแต่|จนกว่า|โดยไม่|อีก)|"
    # Arabic, Persian, Hebrew, Hindi, Urdu, Bengali, Tamil
    r"من (?:الآن|الان|اليوم)(?: ?و? ?صاعد|ا?ً? ?فصاعد| فصاعد)|منذ الآن|بعد الآن|لبقية (?:المحادثة|الحوار)|"
    r"في (?:كل|جميع) (?:ردودك|إجاباتك|رسائلك|الردود)|(?:دائم|دوم)(?:ا|ًا|اً)|كلما (?:ذكرت|كتبت|أجبت)|"
    r"لا [^.!؟]{0,60}(?:أبد(?:ا|ًا|اً)|مطلق(?:ا|ًا|اً)|إلا إذا|دون (?:إذن|أن|موافق)|قبل أن)|"
    r"از (?:این|حالا|الان|امروز) (?:به بعد|پس)|(?:تا پایان|در ادامه‌ی?) (?:این )?(?:گفتگو|مکالمه)|همیشه|"
    r"هر بار که|هرگز|هیچ[\u200c ]?وقت|بدون (?:اجازه|پرسیدن)|"
    r"מעכשיו|מעתה|מהיום|מכאן (?:ואילך|והלאה)|להבא|לשאר השיחה|בהמשך השיחה|תמיד|בכל פעם ש|לעולם (?:לא|אל)|"
    r"אל [^.!?]{0,60}(?:אלא אם|בלי (?:לשאול|אישור|רשות)|לעולם|עד ש)|"
    r"(?:अब|आगे|आज|यहाँ|अभी) से(?! पहले)|बाक़?ी बातचीत|हमेशा|सदैव|हर बार|कभी (?:भी )?[^।?]{0,40}(?:मत|न |नहीं|ना)|"
    r"(?:जब तक|बिना)[^।?]{0,60}(?:मत|न )|اب سے|آئندہ|ہمیشہ|کبھی [^۔؟]{0,40}(?:نہ|مت)|এখন থেকে|সবসময়|কখনও|"
    r"இனிமேல்|எப்போதும்|ఇప్పటి నుండి|എപ്പോഴും"
)
"""Languages that write words together or inflect what is around them: the phrases as they are."""
