"""Find the facts of a text: ids, dates, paths and numbers, each with the words that name it.

JSON is walked: keys name the values, and an object is one record whose first id is its head. Other
text is read word by word: a value is a word with a digit, a path, an address, or a dotted or
mixed-case name, and the nearest words before it name it. No rule depends on a domain or a tool.

Which facts are kept is decided elsewhere (`conversations.digest`).
"""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Fact", "FactKind", "facts_of", "is_settling", "values_in")

FactKind: TypeAlias = Literal["id", "date", "name", "number", "word"]
"""`id` names one thing: keys with digits, paths, files, addresses, versions, constants in capitals.
`name` is an identifier of letters (`total_seconds`, `self.query`, `HttpError`); `word` any other
short value."""

_WORDLIKE = r"0-9A-Za-z_\u00c0-\u0dff\u10a0-\u10ff\u1200-\u177f\u1e00-\u1fff"
"""Letters, digits and marks of scripts with spaces. Characters of other scripts end a value: the
value in 編號W37号 is W37."""
_STARTS = rf"{_WORDLIKE}#@/~$€£¥."
_GOES_ON = rf"{_STARTS}%+\-&?*"
_TOKEN = re.compile(
    rf"[{_STARTS}][{_GOES_ON}]*(?:(?::(?:\d|//)|(?<=\d),(?=\d{{3}}(?!\d)))[{_GOES_ON}]*)*"
)
"""A colon goes on before a digit or a path, a comma between groups of three digits."""
_NO_TOKEN = rf"[^{_STARTS}]*+"
_VALUE_TOKEN = re.compile(
    rf"{_NO_TOKEN}(?:([A-Za-z][a-z]*+)[.?+\-&*/]*+(?![{_GOES_ON}]|:\d|://){_NO_TOKEN})*+"
    rf"(?:({_TOKEN.pattern})|\Z)"
)
"""The next token that is not a plain lower-case word, and the plain word before it. Nine words of
ten are plain; skipping them in the expression takes a third of the time of reading each."""
_TRAILING = ".:?+-&*/"
_LETTERS = re.compile(r"[^\W\d_]+")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?:[T ]\d\d:\d\d.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_NUMBER = re.compile(r"[+\-#$€£¥]?\d[\d.,:]*[%a-zA-Z]{0,2}")
_PAIR = re.compile(r"([^\W\d_][\w\-]*):(?!//)(\S+)")
_FILE = re.compile(r"[\w\-]+\.(?:[a-z]{1,3}|json|yaml|html|java|toml|docx|xlsx|pptx|jpeg|lock)")
_KEY_ENDS = ('":', "':", '" :')
"""Characters after a key in JSON that did not parse; the word before them is a label."""
_LABEL_REACH = 48
"""Characters before a value that may hold the words that name it."""
_LONGEST_VALUE = 80
_LONGEST_LEAF = 60
"""A JSON string of more characters is read like prose."""
_DEEPEST = 32
_DECODER = json.JSONDecoder()
_FILLERS = frozenset(
    {
        *("the", "and", "for", "with", "from", "that", "this", "was", "were", "are", "has", "have"),
        *("had", "not", "your", "our", "its", "all", "any", "into", "been", "will", "would", "can"),
        *("could", "please", "should", "shall", "now", "also", "then", "than"),
    }
)
"""Words that are not used as the name of a value."""
_VAGUE = frozenset({"id", "ids", "name", "value", "type", "key", "number", "no", "code"})
"""Keys that need the key above them to name a value."""


class Fact(NamedTuple):
    """One value with the words that name it; a tuple, because thousands are read for one digest."""

    label: str
    """The key or the words that name the value; empty when nothing does."""
    value: str
    """The value, verbatim."""
    kind: FactKind
    """What sort of value it is."""
    record: int
    """Facts of one JSON object or one line of prose share a number; it grows with the text."""
    head: str
    """The first id of the record, to distinguish records; empty if it has none."""


def facts_of(text: str) -> list[Fact]:
    """Read the facts of one text, in their order.

    JSON objects and lists are walked, anything else is read as prose. Never raises.

    ```python
    from muntin.text.facts import facts_of

    for fact in facts_of("Your order #W37 of 2024-05-19 is at /srv/out.csv"):
        print(f"{fact.label}: {fact.value} ({fact.kind})")
    #> order: #W37 (id)
    #> order: 2024-05-19 (date)
    #> order: /srv/out.csv (id)
    print([f"{fact.label}={fact.value}" for fact in facts_of('{"seat": {"id": "12C"}}')])
    #> ['seat id=12C']
    ```
    """
    parsed, end = _parsed(text)
    if not end:
        return list(_prose(text))
    walk = _Walk()
    walk.leaves(parsed, (), 0, 0, "")
    if end < len(text):
        walk.facts += _prose(text[end:], record=walk.records)
    return walk.facts


@functools.lru_cache(maxsize=16_384)
def kind_of(token: str) -> FactKind | None:
    """Return the kind of value a word is; `None` for an ordinary word."""
    if any(map(str.isdigit, token)):
        if _DATE.fullmatch(token):
            return "date"
        digits = token.lstrip("#$€£¥+-")
        is_amount = _NUMBER.fullmatch(token) and (len(digits) < 5 or not digits.isdigit())
        return "number" if is_amount and token[0] != "#" else "id"
    letters = sum(map(str.isalpha, token))
    if letters < 3 or len(token) < 5:
        return None
    inner = token[1:-1]
    slashes = token.count("/")
    is_path = slashes and (slashes > 1 or token[0] in "/~" or "." in inner or "_" in inner)
    if is_path or "@" in inner or _FILE.fullmatch(token):
        return "id"
    if "_" in inner and token.isupper():
        return "id"
    if "_" in token.strip("_") or ("." in inner and ".." not in inner):
        return "name"
    if slashes:
        return "word" if len(token) > 8 else None
    is_mixed = any(map(str.isupper, token[1:])) and any(map(str.islower, token))
    return "name" if is_mixed and len(token) > 5 else None


def _parsed(text: str) -> tuple[object, int]:
    """Read JSON at the beginning of a text; where it ends, 0 when there is none."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] not in ("{", "["):
        return None, 0
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0


def _prose(text: str, *, fallback: str = "", record: int = 0) -> Iterator[Fact]:
    """Read the values of running text; each line is a record."""
    line_end = -1
    head = ""
    for match in _VALUE_TOKEN.finditer(text):
        word = match[2]
        if word is None or (word.isalpha() and word[1:].islower()):
            continue  # a plain word: `kind_of` would return None
        token = word.rstrip(_TRAILING)
        if len(token) < 2 or len(token) > _LONGEST_VALUE:
            continue
        kind = kind_of(token)
        if kind is None or (kind == "name" and text.startswith(_KEY_ENDS, match.end())):
            continue
        start = match.start(2)
        if start > line_end:
            line_end = text.find("\n", start)
            line_end = len(text) if line_end < 0 else line_end
            record, head = record + 1, ""
        label = ""
        pair = _PAIR.fullmatch(token)
        if pair:
            label, token = pair[1], pair[2]
            kind = kind_of(token)
            if kind is None:
                continue
        label = label or _named_by(text, match) or _naming(text, start) or fallback
        head = head or (token if kind == "id" else "")
        yield Fact(label, token, kind, record, head)


def _named_by(text: str, match: re.Match[str]) -> str:
    """Take the plain word just before a token if it is a sufficient name."""
    word: str | None = match[1]
    if word is None or len(word) < 3 or word.lower() in _FILLERS:
        return ""
    begin, at = match.start(1), match.start(2)
    near = text[max(0, begin - 1) : at]
    return word if near.isascii() and at - begin < _LABEL_REACH else ""


def _naming(text: str, at: int) -> str:
    """Find the words just before a position that name the value there."""
    last = ""
    for reach in (_LABEL_REACH // 3, _LABEL_REACH):  # most are named by the word before them
        before = text[max(0, at - reach) : at]
        found = _LETTERS.findall(before)
        if found and len(before) == reach and before[0].isalpha():
            del found[0]  # perhaps only the end of a word
        last = found[-1] if found else ""
        for word in reversed(found):
            if len(word) < 3 or word.lower() in _FILLERS:
                continue
            if word != last and last.lower() in _VAGUE:
                return f"{word} {last}"
            return word if word.isascii() else word[-8:]
    return last[-8:]


class _Walk:
    """Walks parsed JSON, numbering its records.

    JSON has few types, so types are compared directly instead of by `isinstance`.
    """

    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.records = 0

    def leaves(
        self, node: object, path: tuple[str, ...], record: int, depth: int, head: str
    ) -> None:
        """Read all that is below a node; `path` are the last two keys above it."""
        if depth > _DEEPEST:
            return
        if type(node) is dict:
            self._object(cast("dict[str, object]", node), path, record, depth, head)
        elif type(node) is list:
            for item in cast("list[object]", node):
                if type(item) in _CONTAINERS:
                    self.leaves(item, path, self._next(), depth + 1, "")
                elif depth < _DEEPEST:
                    self._leaf(item, path, record, head)
        else:
            self._leaf(node, path, record, head)

    def _next(self) -> int:
        self.records += 1
        return self.records

    def _object(
        self, node: dict[str, object], path: tuple[str, ...], record: int, depth: int, head: str
    ) -> None:
        head = head or _first_id(node)
        last = path[-1:]
        later: list[tuple[str, object]] = []
        for key, child in node.items():
            if type(child) in _CONTAINERS:
                later.append((key, child))
            elif depth < _DEEPEST:
                self._leaf(child, (*last, key), record, head)
        for key, child in later:
            if kind_of(key) == "id" and any(map(str.isdigit, key)) and len(key.split()) == 1:
                inner = self._next()
                self.facts.append(Fact(_label(path), key, "id", inner, key))
                self.leaves(child, path, inner, depth + 1, key)
            else:
                self.leaves(child, (*last, key), record, depth + 1, head)

    def _leaf(self, leaf: object, path: tuple[str, ...], record: int, head: str) -> None:
        if leaf is None:
            return
        kind = type(leaf)
        if kind is bool:
            word = "true" if leaf else "false"
            self.facts.append(Fact(_label(path), word, "word", record, head))
            return
        text = str(leaf)
        value = " ".join(text.split())
        if not value:
            return
        if len(value) > _LONGEST_LEAF:
            self.facts += [
                Fact(fact.label, fact.value, fact.kind, record, head or fact.head)
                for fact in _prose(text, fallback=_label(path))
            ]
            return
        found = "number" if kind is float else kind_of(value) or "word"
        if found == "id" and " " in value:
            found = "word"
        self.facts.append(Fact(_label(path), value, found, record, head))


_CONTAINERS = frozenset((dict, list))


def _first_id(node: dict[str, object]) -> str:
    """Find the first id among the values of an object; empty when it has none."""
    for leaf in node.values():
        if isinstance(leaf, (str, int)):
            text = str(leaf)
            if " " not in text and kind_of(text) == "id":
                return text
    return ""


@functools.lru_cache(maxsize=1024)
def _label(path: tuple[str, ...]) -> str:
    """Name a value by the last two keys above it, or by one if that is sufficient."""
    if not path:
        return ""
    named = path if path[-1].lower() in _VAGUE else path[-1:]
    return " ".join(" ".join(named).split())[:_LONGEST_LEAF]


def values_in(text: str) -> Iterator[str]:
    """Read the values of a text as prose, without the words that name them."""
    for match in _TOKEN.finditer(text):
        value = match[0].rstrip(_TRAILING)
        if value:
            yield value


_SETTLED = (
    *("decision", "must", "never", "always", "do not", "don't", "don’t", "cannot", "can't"),
    *("can’t", "won't", "won’t", "instead", "because", "therefore", "root cause", "turns out"),
    *("fixed", "resolved", "deadline", "remember", "important", "todo", "not allowed", "only if"),
    *("unless", "limit to", "limited to"),
)
_SETTLERS = {
    **{words: words for words in _SETTLED},
    **{
        f"the {it}": f"the {it} (?:is|was)"
        for it in ("bug", "fix", "problem", "issue", "cause", "reason", "goal")
    },
    "decid": r"decid\w+",
    "agree": "agreed?",
    "conclu": r"conclu\w+",
    "confirm": r"confirm\w*",
    "prefer": r"prefer\w*",
    "require": "required?",
    "next step": "next steps?",
}
"""English words of a decision, rule, cause or next step: a part to search for, the expression."""
_SETTLING = re.compile(rf"\b(?:{'|'.join(_SETTLERS.values())})\b")
_SETTLING_ELSEWHERE = re.compile(
    r"决定|必须|不要|不能|因此|所以|结论|确认|截止|记住|決定|必要|しないで|ください|結論|確認|期限"
    r"|결정|반드시|하지 마|결론|확인|마감|ต้อง|ห้าม|ตัดสินใจ|สรุป|ยืนยัน"
)
"""Words of a decision or rule in Chinese, Japanese, Korean and Thai."""


def is_settling(sentence: str) -> bool:
    """Return whether a sentence states a decision, a rule, a cause or a next step."""
    folded = sentence.lower()
    # Searching for plain words first takes less than half the time of the expression.
    for word in _SETTLERS:
        if word in folded:
            if _SETTLING.search(folded):
                return True
            break
    return not folded.isascii() and _SETTLING_ELSEWHERE.search(folded) is not None
