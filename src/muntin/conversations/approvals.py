"""Recognise short user messages that only let the assistant go on, and assistant questions.

"yes", "go ahead", "1", "继续" and a thumbs-up add nothing to a request, which is the one before
them. The word lists cover common languages. Where a language is not listed, a question mark in the
assistant message or the course of the turns (see `protect`) decides.
"""

from __future__ import annotations

import re

__all__ = ("asks_something", "is_go_ahead", "is_short_reply")

_LONGEST = 60
"""Characters of a go-ahead. A longer message is a request."""
_SHORT, _SHORT_UNSPACED, _FEW_WORDS = 16, 6, 2
"""Characters and words of a reply too short to be a request, with and without spaces."""
_QUESTION_TAIL = 400
"""Characters at the end of an assistant message in which a question is looked for."""

_GO_AHEAD_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a absolutely again ahead agree agreed all allow alright also and any approve approved as b
        both c carry confirm confirmed continue correct course d definitely do either everything
        exactly fine first for fourth full forward go going good great have i in indeed is it just
        keep kindly last later let lets lgtm like looks me my next no nope not now of off ok okay
        okey okie on one only option perfect plan please pls plz proceed really right s same second
        sir so sounds start step sure sweet thank thanks that the then these they thing things third
        this those three to too two u um us very want way we well what whatever will with works
        would yeah yep yes you your yup possible soon steam speed number choice choose pick ja jap
        jo jawohl klar gerne gern bitte mach machen mache machs weiter weitermachen los gehts geht
        es leg fang an einverstanden genau richtig stimmt passt gut prima super danke natürlich tu
        das fortfahren fahr fahre fort ruhig mal alles nein doch beide beides erste zweite dritte
        oui ouais vas y allez allons poursuis poursuivez continuez accord bien sûr sur merci parfait
        fais le les est bon svp il vous te plaît plait plaìt non tout la un deux trois première sí
        si claro adelante sigue siga continúa continua continúe dale vale hazlo hágalo por favor
        gracias perfecto bueno de acuerdo correcto exacto todo uno dos tres primera procede proceda
        certo va bene vai avanti continui procedi prosegui grazie perfetto fallo sì accordo esatto
        giusto tutto due tre seconda sim pode podes continuar prossiga em frente faça faz obrigado
        obrigada isso perfeito não bom tudo graag doe maar ga door verder akkoord goed dank je wel
        oké alsjeblieft tack fortsätt gör det kör bra okej snälla jag vill gärna takk fortsett gjør
        kjør tak fortsæt gør godt kyllä joo jatka tee se kiitos hyvä selvä proszę kontynuuj dalej
        zrób dobrze zgoda jasne dziękuję śmiało oczywiście nie ano pokračuj pokračujte prosím dobře
        jasně udělej díky souhlasím áno igen folytasd folytassa rendben kérem köszönöm jó persze
        csináld da continuă mergi mai departe vă rog bine sigur desigur nastavi redu može hajde
        molim evet devam et edin tamam olur lütfen tabii yap yapın teşekkürler peki hayır ndiyo
        endelea sawa tafadhali asante ya iya lanjut lanjutkan silakan teruskan baik oke setuju
        tolong terima kasih boleh vâng có được rồi tiếp tục đi làm cảm ơn ừ dạ hãy nào đồng ý да
        давай давайте продолжай продолжайте продолжить хорошо ладно ок окей пожалуйста делай делайте
        конечно верно спасибо согласен согласна вперед вперёд ага угу нет так дальше все всё это
        продовжуй продовжуйте добре гаразд будь ласка роби звичайно дякую ναι συνέχισε συνεχίστε
        εντάξει παρακαλώ προχώρα προχωρήστε ωραία κάνε το ευχαριστώ כן המשך תמשיך קדימה בסדר בבקשה
        אוקיי תודה נכון אישור نعم تابع استمر أكمل اكمل حسنا حسنًا موافق من فضلك تفضل نفذ شكرا شكرًا
        أجل ايوه طيب يلا تمام بله ادامه بده بدهید لطفا باشه ممنون हाँ हां जी ठीक है आगे बढ़ो बढ़ें
        बढ़िए करो करें कीजिए जारी रखो रखें कृपया धन्यवाद अच्छा बिल्कुल হ্যাঁ ঠিক আছে চালিয়ে যাও যান
        করো করুন দয়া করে ধন্যবাদ ஆம் சரி தொடரவும் தொடருங்கள் செய் நன்றி
        """,
    )
)
"""Words that agree, allow or choose, and the grammar around them. They carry no content."""

_UNSPACED = sorted(
    re.findall(
        r"\S+",
        """
        继续 繼續 好的 好啊 好吧 好 是的 是 对的 对 對 可以 行 嗯 请 請 吧 的 了 啊 呀 麻烦 谢谢
        謝謝 开始 開始 进行 执行 執行 同意 确认 確認 没问题 沒問題 没错 当然 當然 就这样 这样 做 去
        下去 往下 请继续 继续吧 第一个 第二个 第一 第二 都 要 全部 不 不用 不是 はい お願いします
        お願い おねがいします 続けて 続き 続行 ください 下さい どうぞ 了解 いいです いい ええ うん
        そう です よろしく 進めて やって してください して オッケー ok それで 大丈夫 承知 ありがとう
        その通り いいえ で を に 네 예 응 그래 그래요 좋아 좋아요 좋습니다 계속 계속해 진행 진행해
        해주세요 주세요 줘 해 하세요 부탁해 부탁합니다 부탁드립니다 맞아 맞아요 맞습니다 알겠어
        감사합니다 고마워 시작 아니요 요 ได้เลย ได้ ใช่ ครับ ค่ะ คะ ตกลง โอเค ทำต่อ ต่อ เลย ทำ ไป
        ดำเนินการ ต่อไป ขอบคุณ จ้า นะ เอา បាទ ចាស បន្ត យល់ព្រម ແມ່ນ ສືບຕໍ່ ဟုတ်ကဲ့ ဆက်လုပ်ပါ
        """,
    ),
    key=len,
    reverse=True,
)
"""The same in scripts without spaces, longest first."""
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u9fff\uac00-\ud7af]"
)
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903"
                   r"\u093a-\u094f\u0951-\u0957\u0981-\u0983\u09bc-\u09cd\u0b82\u0bbe-\u0bcd\u200c"
                   r"\u200d]+[^\W_]*)*")  # fmt: skip
_CHOICE = re.compile(r"\W*(?:(?:option|nr|no|number|#)\W*)?(?:\d{1,2}|[a-z])\W*", re.IGNORECASE)
_QUESTION_MARK = re.compile("[?？؟\u037e՞፧⁇⁈⸮]+[\"'”’»)\\]」』）*_`\\s]*(?:\\s|$)")
_URL = re.compile(r"\S+://\S+")
_ASKING = re.compile(
    r"""
    let\ me\ know
    |please\ (?:confirm|choose|select|pick|specify|tell|provide|clarify|reply|advise)
    |tell\ me\ (?:which|whether|if|what)|awaiting\ your|waiting\ for\ your
    |your\ (?:go-?ahead|approval)\b|say\ the\ word|reply\ with|which\ one|shall\ i\b
    |should\ i\b|do\ you\ want|would\ you\ like|bitte\ (?:bestätige|wähle|sag|gib)
    |sag\ (?:mir\ )?bescheid|soll\ ich|möchtest\ du|möchten\ sie|dites-moi|dis-moi|veuillez
    |merci\ de\ confirmer|souhaitez-vous|voulez-vous|dois-je|\bconfirma\b|dime\b|dígame|avísame
    |quieres\ que|desea\ que|me\ diga|me\ avise|fammi\ sapere|\bconferma\b|quer\ que|deseja\ que
    |laat\ (?:het\ )?(?:me|mij)\ weten|подтверди|дайте\ знать|скажите|хотите|请确认|请选择
    |请告诉|請確認|請選擇|吗\s*[。.]?\s*$|呢\s*[。.]?\s*$|要不要|是否|ますか|でしょうか|ですか
    |ください\s*[。.]?\s*$|까요|나요\s*[.]?\s*$|습니까|ไหม|หรือไม่|onaylıyor|ister\ mi\b
    |\bmi\s*[.]?\s*$|चाहेंगे|क्या\ मैं
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Words in which something is asked or offered without a question mark."""
_CLOSING = re.compile(
    r"""
    (?:anything|something|what)\ else|how\ (?:can|may|could)\ i\ (?:help|assist)
    |what\ (?:can|may|could)\ i\ do\ for
    |(?:can|may)\ i\ (?:help|assist)\ (?:you\ )?(?:with\ )?(?:any|some)
    |(?:further|other|more)\ (?:questions|help|assistance)|sonst\ noch\ (?:etwas|was)
    |noch\ etwas|(?:kann|darf)\ ich\ (?:dir|ihnen|sonst|noch)|womit\ kann\ ich|autre\ chose
    |comment\ puis-je|algo\ más|(?:en\ )?qué\ (?:puedo|más)|cómo\ puedo|\baltro\b|come\ posso
    |mais\ alguma|como\ posso|anders\ (?:nog|iets)|还有什么|其他问题|帮您|帮你|幫您|他に何か
    |お手伝い|더\ 도와|도와\s*드릴|чем\ (?:ещё|еще|могу)|что-нибудь\ ещё
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Polite endings that ask for the next request, not about this one."""


def is_go_ahead(text: str) -> bool:
    """Return whether a user message only agrees, allows or chooses, and has no content of its own.

    ```python
    from muntin.conversations.approvals import is_go_ahead

    print([is_go_ahead(text) for text in ("Yes, go on!", "2", "好的，继续", "Yes, for plant 7")])
    #> [True, True, True, False]
    ```
    """
    said = text.strip().casefold()
    if len(said) > _LONGEST or "?" in said or "？" in said:
        return False
    if _CHOICE.fullmatch(said):
        return True
    if _SPACELESS.search(said):
        for phrase in _UNSPACED:
            said = said.replace(phrase, " ")
    found = [word.strip("\u200c\u200d") for word in _WORD.findall(said)]
    return all(word in _GO_AHEAD_WORDS or (len(word) == 1 and word.isdigit()) for word in found)


def is_short_reply(text: str) -> bool:
    """Return whether a message is too short to ask for something, in any language."""
    said = text.strip()
    if _QUESTION_MARK.search(said) or any(character.isdigit() for character in said):
        return False
    longest = _SHORT_UNSPACED if _SPACELESS.search(said) else _SHORT
    return len(said) <= longest and len(said.split()) <= _FEW_WORDS


def asks_something(text: str) -> bool:
    """Return whether an assistant message asks the user something about the running request.

    Only its last lines are read. "Anything else?" asks for another request and does not
    count.

    ```python
    from muntin.conversations.approvals import asks_something

    print([asks_something(text) for text in ("Shall I?", "Done. Anything else?", "It is 3.")])
    #> [True, False, False]
    ```
    """
    tail = _URL.sub(" ", text[-_QUESTION_TAIL:].rstrip())
    last = tail.rpartition("\n\n")[2]
    # A list of choices often follows the question that introduces it.
    looked_at = last if len(last) > 80 else tail
    asked = [match.start() for match in _QUESTION_MARK.finditer(looked_at)]
    asked += [match.start() for match in _ASKING.finditer(looked_at)]
    if not asked:
        return False
    closings = [match.start() for match in _CLOSING.finditer(looked_at)]
    return not closings or min(asked) < min(closings) - 40
