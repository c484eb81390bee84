"""The texts the estimate of tokens is fitted to, and those held out to see whether it holds.

Three sources: the real data (many kinds and languages), the Universal Declaration of Human Rights
in 92 languages (`texts/udhr.jsonl.gz`; text of the United Nations, free to reproduce, as collected
by the Unicode UDHR project; of the languages in the real data only articles that are not there,
lest something held out there be fitted here), and made-up notations for what neither contains:
random digits, hex, base64, punctuation, runs of one character, symbols of rare blocks.
Of every kind each third text, in the order of a hash of its id, is held out.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import re
import string
import zlib
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muntin.counting import CLASSES, class_table

from ._data import json_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("FitText", "fit_texts")

_RARE = 1_500
"""A class with fewer characters than this in real text gets made-up text beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitText:
    """A text to fit to, or to check on."""

    id: str
    kind: str
    """Texts of one kind share one weight, however long they are."""
    text: str
    weight: float
    """Importance of the kind: how often such text is counted in practice."""
    held: bool = False
    """Whether it is kept out of the fit."""


def fit_texts() -> list[FitText]:
    """Gather all texts, a third of each kind held out."""
    real = [*_multilingual(), *_declarations(), *_passages(), *_conversations(), *_trajectories()]
    real = [text for text in real if text.text]
    return [*_hold_out(real), *_notations(), *_rare_classes(real), *_runs()]


def _hold_out(texts: Iterable[FitText]) -> Iterator[FitText]:
    kinds: defaultdict[str, list[FitText]] = defaultdict(list)
    for text in texts:
        kinds[text.kind].append(text)
    for kind in sorted(kinds):
        ordered = sorted(kinds[kind], key=lambda text: hashlib.sha256(text.id.encode()).digest())
        for index, text in enumerate(ordered):
            yield replace(text, held=index % 3 == 2)


def _multilingual() -> Iterator[FitText]:
    weights = {"english": 120.0, "code": 40.0, "json": 20.0, "russian": 16.0}
    for record in json_lines("multilingual.jsonl"):
        kind = record["kind"]
        yield FitText(
            id=record["id"], kind=kind, text=record["text"], weight=weights.get(kind, 12.0)
        )


def _declarations() -> Iterator[FitText]:
    path = Path(__file__).with_name("texts") / "udhr.jsonl.gz"
    weights = {"eng": 45.0, "rus": 10.0}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        record = json.loads(line)
        third = len(record["text"]) // 3 + 1
        for part in range(3):
            yield FitText(
                id=f"{record['id']}-{part}",
                kind=f"language {record['id']}",
                text=record["text"][part * third : (part + 1) * third],
                weight=weights.get(record["id"], 6.0),
            )


def _passages() -> Iterator[FitText]:
    for index, record in enumerate(json_lines("retrieval.dev.jsonl.gz")):
        passage = record["passages"][index % len(record["passages"])]
        yield FitText(id=record["id"], kind="wikipedia", text=passage["text"], weight=180.0)


def _conversations() -> Iterator[FitText]:
    for record in json_lines("conversations.dev.jsonl.gz"):
        kind = record["kind"].partition(":")[0]
        text = "\n".join(turn["text"] for turn in record["turns"])[:4_000]
        yield FitText(id=record["id"], kind=kind, text=text, weight=60.0)


def _trajectories() -> Iterator[FitText]:
    weights = {"miniswe": 40.0, "sweagent": 30.0}
    for record in json_lines("trajectories.dev.jsonl.gz"):
        maker = record["id"].partition("-")[0]
        messages: list[dict[str, Any]] = record["messages"][1:30]
        texts = [str(message.get("content") or "")[:1_500] for message in messages]
        calls = [call for message in messages for call in message.get("tool_calls") or ()]
        text = "\n".join(texts)[:9_000]
        arguments = "\n".join(str(call["function"]["arguments"]) for call in calls)[:4_000]
        weight = weights.get(maker, 10.0)
        yield FitText(id=record["id"], kind=f"{maker} messages", text=text, weight=weight)
        yield FitText(id=record["id"], kind=f"{maker} calls", text=arguments, weight=10.0)
        if maker in weights:
            pressed = _minified(text[:3_000])
            yield FitText(id=record["id"], kind="minified", text=pressed, weight=24.0)


def _minified(code: str) -> str:
    """Press code together as a minifier does: no white space it can spare, half the names short."""
    short = re.sub(
        r"\b[A-Za-z_]\w{2,}\b",
        lambda name: name[0][:1] if zlib.crc32(name[0].encode()) % 2 else name[0],
        code,
    )
    return re.sub(r"\s*([^\w\s])\s*", r"\1", short)


def _notations() -> Iterator[FitText]:
    chance = random.Random(11)

    def some(alphabet: str, length: int) -> str:
        return "".join(chance.choice(alphabet) for _ in range(length))

    def words(alphabet: str) -> str:
        return " ".join(some(alphabet, chance.randint(2, 12)) for _ in range(150))

    def number() -> str:
        return f"{chance.uniform(0, 10 ** chance.randint(0, 6)):.{chance.randint(0, 5)}f}"

    def cell() -> str:
        return chance.choice(("name", "total", "42", "3.5", "—", "ok", "n/a", "価格"))

    makers = {
        "hex": lambda: chance.randbytes(300).hex(),
        "hex upper": lambda: chance.randbytes(300).hex().upper(),
        "hashes": lambda: " ".join(
            chance.randbytes(chance.choice((2, 4, 8, 16, 20))).hex() for _ in range(60)
        ),
        "uuids": lambda: "\n".join(
            "-".join(chance.randbytes(size).hex() for size in (4, 2, 2, 2, 6)) for _ in range(20)
        ),
        "base64": lambda: base64.b64encode(chance.randbytes(900)).decode(),
        "keys": lambda: some(string.ascii_letters + string.digits, 900),
        "percent": lambda: "".join(f"%{byte:02X}" for byte in chance.randbytes(250)),
        "escapes": lambda: "".join(f"\\u{chance.randrange(65536):04x}" for _ in range(150)),
        "punctuation": lambda: some(string.punctuation, 600),
        "punctuation clusters": lambda: " ".join(
            some(string.punctuation, chance.randint(1, 8)) for _ in range(120)
        ),
        "digits": lambda: some(string.digits, 600),
        "numbers": lambda: "\n".join(",".join(number() for _ in range(6)) for _ in range(25)),
        "random words": lambda: words(string.ascii_lowercase),
        "random letters": lambda: some(string.ascii_lowercase, 900),
        "rulers": lambda: "\n".join(
            chance.choice("─═━┄") * chance.randint(10, 160) + cell() for _ in range(12)
        ),
        "box table": lambda: "\n".join(
            f"│ {cell():<{chance.randint(4, 12)}} │ {cell()} │\n├{'─' * chance.randint(3, 30)}┤"
            for _ in range(15)
        ),
    }
    weights = {"punctuation": 6.0, "digits": 6.0, "random words": 12.0, "rulers": 4.0}
    for kind, make in makers.items():
        for part in range(6):
            yield FitText(
                id=f"{kind} {part}",
                kind=f"made: {kind}",
                text=make(),
                weight=weights.get(kind, 1.5),
                held=part > 3,
            )


def _rare_classes(real: Iterable[FitText]) -> Iterator[FitText]:
    """Make text for the classes that real text hardly has, so that no rate is a guess."""
    table = class_table()
    seen: Counter[int] = Counter()
    for text in real:
        seen.update(table[min(ord(character), len(table) - 1)] for character in text.text)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for code, own in enumerate(table.tolist()):
        if not 0xD800 <= code <= 0xDFFF:  # surrogates are replaced before anything counts
            members[own].append(code)
    chance = random.Random(12)
    for own in sorted(members):
        enough = seen[own] >= _RARE and not CLASSES[own].endswith("-rare")
        if enough or (CLASSES[own].isascii() and len(CLASSES[own]) == 1):
            continue
        for part in range(3):
            groups = [
                "".join(chr(chance.choice(members[own])) for _ in range(chance.randint(1, 8)))
                for _ in range(20)
            ]
            run = "".join(chr(chance.choice(members[own])) for _ in range(60))
            yield FitText(
                id=f"{CLASSES[own]} {part}",
                kind=f"class: {CLASSES[own]}",
                text=" ".join([*groups, run]),
                weight=0.6,
            )


def _runs() -> Iterator[FitText]:
    """Make short and long runs of every single character that is a class of its own."""
    lengths = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32)
    for name in CLASSES:
        if len(name) == 1:
            weight = 0.2 if name.isalpha() else 6.0 if name == " " else 0.6
            short = "\n".join(f"x{name * length}x" for length in lengths)
            yield FitText(id=f"short {name!r}", kind=f"run: {name!r}", text=short, weight=weight)
            long = f"x{name * 3_000}"
            yield FitText(id=f"long {name!r}", kind=f"long run: {name!r}", text=long, weight=weight)
