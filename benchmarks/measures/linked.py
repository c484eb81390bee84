"""Are all passages of a linked answer in the block? Made cases where links are of another kind.

* `code`: a function and the one function of its module that it calls (the standard library).
* `ids`: records of a tool result that name each other by ids, a chain of three.
* `three steps`: a book, its author and the author's town, a chain of three.
* `German` and `Chinese`: a book and its author, with inflection, and without spaces.

Passages are ranked by BM25 and carry no vectors. The cases are drawn with a fixed seed; those of
`code` depend on the version of Python.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import random
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measures.tokens import count
from muntin.text import bm25_scores

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("KINDS", "Case", "all_placed", "cases")

_POOL = 30
_MODULES = ("shutil", "textwrap", "calendar", "statistics", "tarfile", "zipfile", "inspect", "ast",
            "locale", "mimetypes", "netrc", "platform", "tokenize", "uuid", "warnings", "heapq",
            "gettext", "ipaddress", "difflib", "tempfile")  # fmt: skip


class Case(NamedTuple):
    """One question with its passages."""

    question: str
    passages: dict[str, str]
    """Passages by id."""
    gold: tuple[str, ...]
    """Ids of the passages that the answer needs."""


def _code() -> list[Case]:
    found: list[Case] = []
    for module in _MODULES:
        source = inspect.getsource(importlib.import_module(module))
        parts = {
            node.name: (ast.get_source_segment(source, node) or "")[:900]
            for node in ast.parse(source).body
            if isinstance(node, ast.FunctionDef)
        }
        for name, text in parts.items():
            called = [other for other in parts if other != name and f"{other}(" in text]
            if len(called) == 1 and len(name) > 5:
                question = f"What does the function that {name} calls return?"
                found.append(Case(question, parts, (name, called[0])))
    return found


def _ids() -> list[Case]:
    draw = random.Random(3)
    passages: dict[str, str] = {}
    orders: list[tuple[str, tuple[str, ...]]] = []
    for n in range(80):
        order, customer, depot = f"A-{1000 + 7 * n}", f"C-{300 + 3 * n}", f"D-{50 + n}"
        weight = draw.randint(1, 90)
        passages[order] = (
            f'{{"order_id": "{order}", "customer": "{customer}", "weight": {weight}, '
            f'"status": "{draw.choice(("sent", "open", "late"))}"}}'
        )
        passages[customer] = (
            f'{{"customer_id": "{customer}", "since": {draw.randint(1990, 2020)}, '
            f'"depot": "{depot}", "language": "{draw.choice(("sv", "de", "fr"))}"}}'
        )
        passages[depot] = (
            f'{{"depot_id": "{depot}", "opens": "0{draw.randint(5, 9)}:00", '
            f'"doors": {draw.randint(1, 9)}, "customer_service": true}}'
        )
        orders.append((order, (order, customer, depot)))
    return [
        Case(f"When does the depot of the customer of order {order} open?", passages, gold)
        for order, gold in orders
    ]


_SOUNDS = ("ba", "den", "for", "gil", "har", "jun", "kel", "lor", "mar", "nes", "ost", "rik", "sal",
           "tor", "vin", "wes")  # fmt: skip
_SIGNS = "安白城东方高海江金兰林明南青山石天文西雪阳云"


def _names(draw: random.Random, many: int) -> list[str]:
    made: dict[str, None] = {}
    while len(made) < many:
        made["".join(draw.choices(_SOUNDS, k=draw.randint(2, 3))).capitalize()] = None
    return list(made)


def _three_steps() -> list[Case]:
    draw = random.Random(5)
    names = _names(draw, 180)
    found: list[Case] = []
    passages: dict[str, str] = {}
    for n, (book, author, town) in enumerate(zip(*[iter(names)] * 3, strict=True)):
        texts = (
            f"{book} is a novel by {author} Berg. It was printed in {1900 + n} and sold.",
            f"{author} Berg (born {1860 + n}) was a writer who lived in {town} for many years.",
            f"{town} is a town on the coast. Its mayor in that time was {names[n]} Lind.",
        )
        ids = tuple(f"{kind}{n}" for kind in ("book", "author", "town"))
        passages.update(zip(ids, texts, strict=True))
        question = f"Who was mayor of the town in which the writer of the novel {book} lived?"
        found.append(Case(question, passages, ids))
    return found


def _german() -> list[Case]:
    draw = random.Random(7)
    names = _names(draw, 120)
    passages: dict[str, str] = {}
    found: list[Case] = []
    for n, (first, author) in enumerate(zip(names[:60], names[60:], strict=True)):
        title = f"Blauer {first}"
        passages[f"book{n}"] = (
            f"{title} ist ein Roman {author}s aus dem Jahr {1900 + n}. Er wurde oft gedruckt."
        )
        passages[f"author{n}"] = (
            f"{author} wurde {1860 + n} geboren und wuchs an der Küste auf, wo auch das Grab liegt."
        )
        question = f"Wo wuchs der Verfasser des Blauen {first}s auf?"
        found.append(Case(question, passages, (f"book{n}", f"author{n}")))
    return found


def _chinese() -> list[Case]:
    draw = random.Random(11)
    made: dict[str, None] = {}
    while len(made) < 121:
        made["".join(draw.sample(_SIGNS, 3))] = None
    passages: dict[str, str] = {}
    found: list[Case] = []
    for n, (title, author) in enumerate(list(pairwise(made))[::2]):
        passages[f"book{n}"] = f"《{title}》是{author}写的小说，{1900 + n}年出版，卖得很好。"
        passages[f"author{n}"] = f"{author}，{1860 + n}年出生，在海边的小镇长大，后来搬到北京。"
        found.append(Case(f"《{title}》的作者在哪里长大？", passages, (f"book{n}", f"author{n}")))
    return found


KINDS: dict[str, Callable[[], list[Case]]] = {
    "code": _code,
    "ids": _ids,
    "three steps": _three_steps,
    "German": _german,
    "Chinese": _chinese,
}


@cache
def cases(kind: str) -> tuple[tuple[Case, tuple[tuple[str, float], ...]], ...]:
    """Return the cases of one kind with their passages' ids and scores, the best first."""
    ranked: list[tuple[Case, tuple[tuple[str, float], ...]]] = []
    for case in KINDS[kind]():
        ids = list(case.passages)
        scores = bm25_scores(case.question, list(case.passages.values())).tolist()
        scored = sorted(zip(ids, scores, strict=True), key=lambda one: -one[1])
        pool = dict(scored[:_POOL])
        for gold in case.gold:  # a retriever that does not find them leaves nothing to choose
            pool.setdefault(gold, scores[ids.index(gold)])
        ranked.append((case, tuple(sorted(pool.items(), key=lambda one: -one[1]))))
    return tuple(ranked)


def all_placed(
    assemble: Callable[[str, list[dict[str, object]], int], tuple[str, list[str]]],
    kind: str,
    budget: int,
) -> list[bool]:
    """Return for each case whether all its passages are in the block."""
    found: list[bool] = []
    for case, pool in cases(kind):
        offered: list[dict[str, object]] = [
            {"id": name, "title": "", "text": case.passages[name], "score": score}
            for name, score in pool
        ]
        block, ids = assemble(case.question, offered, budget)
        flat = " ".join(block.split())
        found.append(
            count(block) <= budget
            and all(
                one in ids and " ".join(case.passages[one].split()) in flat for one in case.gold
            )
        )
    return found
