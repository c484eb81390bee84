"""Compare texts: words of any script, BM25 scores, shingles.

Selection, recall and summaries compare texts by these words. Scripts with spaces are cut at every
character that is not a letter, digit or combining mark; an underscore cuts too, so that `user_id`
and "user id" have the same words. Scripts without spaces are cut into overlapping pairs of
characters (Chinese, Japanese, Korean: the usual indexing unit) or triples (Thai, Lao, Burmese,
Khmer).

All functions are pure: hashes are the same in every process.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ("bm25_scores", "content_words", "shingles", "words")

_PAIRED = (
    "\u1100-\u11ff\u3005-\u3007\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c"
    "\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f"
    "\U00020000-\U0003ffff"
)
"""Han, kana, bopomofo and hangul: indexed by pairs of characters."""

_TRIPLED = "\u0e01-\u0e2e\u0e30-\u0e3a\u0e40-\u0e4e\u0e81-\u0eae\u0eb0-\u0ecd\u0edc-\u0edf" + (
    "\u1000-\u103f\u1050-\u109d\u1780-\u17d3\u17dc\u17dd\uaa60-\uaa7a"
)
"""Thai, Lao, Burmese and Khmer letters and marks: indexed by triples of characters."""

_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0900-\u0963"
    "\u0971-\u0dff\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u135d-\u135f"
    "\u200c\u200d\u20d0-\u20f0\ufe20-\ufe2f"
)
"""Combining marks. `str.isalnum` is false for them, so a Hindi word would be cut at each."""

_WORD = re.compile(rf"[{_PAIRED}]+|[{_TRIPLED}]+|(?:(?![{_PAIRED}{_TRIPLED}])[^\W_]|[{_MARKS}])+")
_PLAIN = re.compile(r"[a-z0-9]+")


def words(text: str) -> list[str]:
    """Cut a text into the words it is compared by, folded to lower case, in order.

    Runs of scripts without spaces give overlapping pairs or triples of characters instead.

    ```python
    from muntin.text.lexical import words

    print(words("Order #W37 of user_id 7"))
    #> ['order', 'w37', 'of', 'user', 'id', '7']
    print(words("訂單編號"))
    #> ['訂單', '單編', '編號']
    ```
    """
    folded = text.casefold()
    if folded.isascii():
        return _PLAIN.findall(folded)
    return list(_words(folded))


def _words(folded: str) -> Iterator[str]:
    for match in _WORD.finditer(folded):
        run = match[0]
        if run[0] < "\u0e01":
            yield run
            continue
        size = _gram_size(run[0])
        if not size or len(run) <= size:
            yield run
        else:
            yield from (run[at : at + size] for at in range(len(run) - size + 1))


@functools.lru_cache(maxsize=4096)
def _gram_size(character: str) -> int:
    """Characters per index unit of a script; 0 where words are written apart."""
    if re.match(rf"[{_PAIRED}]", character):
        return 2
    return 3 if re.match(rf"[{_TRIPLED}]", character) else 0


_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about above after again all also am an and any are as at be because been before being
        below between both but by can could did do does doing done down during each else few for
        from further get gets got had has have having he her here hers herself him himself his how
        i if in into is it its itself just me might mine more most much must my myself no nor not
        now of off on once only or other ought our ours ourselves out over own per quite rather
        really same shall she should so some such than that the their theirs them themselves then
        there these they this those through thus to too under until up upon us very was we were
        what when where whether which while who whom whose why will with within without would yes
        yet you your yours yourself yourselves d ll m re s t ve don didn doesn isn aren wasn weren
        won wouldn couldn shouldn hasn haven hadn ain ok okay oh uh um hmm mm yeah right well like
        know think mean
        """,
    )
)
"""English function words and fillers. For other languages the rarity of words in the collection has
the same effect."""


def content_words(text: str) -> list[str]:
    """Cut a text into words without function words; return all words if it has no others.

    ```python
    from muntin.text.lexical import content_words

    print(content_words("What did she say about the budget?"))
    #> ['say', 'budget']
    print(content_words("To be or not to be"))
    #> ['to', 'be', 'or', 'not', 'to', 'be']
    ```
    """
    found = words(text)
    return [word for word in found if word not in _FUNCTION_WORDS] or found


def bm25_scores(
    query: str, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75
) -> NDArray[np.float64]:
    """Score every text against a query by BM25 within these texts.

    The collection the document frequencies come from is `texts` itself. Each distinct content word
    of the query counts once. A text that shares no word with the query scores 0; so does everything
    when the query has no words. Linear in the characters of the texts.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
    the idf that never turns negative, `log(1 + (n - df + 0.5) / (df + 0.5))`.

    Args:
        query: The question, in any script `words` knows.
        texts: The collection.
        k1: How slowly repetition of a word saturates.
        b: How much a long text is held against it, 0 to 1.

    ```python
    from muntin.text.lexical import bm25_scores

    print(bm25_scores("disk budget", ["the budget is 300", "lunch?", "disk"]).argmax())
    #> 2
    ```
    """
    scores = np.zeros(len(texts))
    wanted = dict.fromkeys(content_words(query))
    if not wanted or not len(texts):
        return scores
    lengths = np.zeros(len(texts))
    postings: dict[str, tuple[list[int], list[int]]] = {word: ([], []) for word in wanted}
    for at, text in enumerate(texts):
        found = words(text)
        lengths[at] = len(found)
        for word, times in Counter(filter(postings.__contains__, found)).items():
            rows, counts = postings[word]
            rows.append(at)
            counts.append(times)
    norm = k1 * (1 - b + b * lengths / max(1.0, lengths.mean()))
    for rows, counts in postings.values():
        if not rows:
            continue
        idf = math.log1p((len(texts) - len(rows) + 0.5) / (len(rows) + 0.5))
        times = np.asarray(counts, dtype=np.float64)
        scores[rows] += idf * times * (k1 + 1) / (times + norm[rows])
    return scores


_MIX = 0x9E3779B97F4A7C15
"""An odd 64-bit constant (2**64 / golden ratio): multiplication by it is a bijection."""

_LONGEST = 1 << 12
"""Bytes after which the positions within a word repeat, so that one giant word stays cheap."""

_POWERS = np.multiply.accumulate(np.full(_LONGEST, _MIX, dtype=np.uint64))
_IN_WORD = np.array([chr(byte).isalnum() or byte >= 0x80 for byte in range(256)])


def shingles(
    texts: Sequence[str], *, size: int = 3
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hash every run of `size` consecutive words of every text.

    Two texts resemble each other as far as their shingles overlap (Broder 1997). A text of fewer
    words than `size` is one shingle; a text without words has none. The hashes are the same in
    every process and on every machine.

    Args:
        texts: The texts, all at once: cutting them is cheap, and the rest is done in one go.
        size: Words per shingle.

    Returns:
        The hashes and the position of the text each belongs to, both of shape `(m,)`, sorted by
        hash and then by text; a text has each of its shingles once.

    ```python
    from muntin.text.lexical import shingles

    hashes, owners = shingles(["a b c d", "b c d e", "?!"])
    print(len(hashes), sorted(owners.tolist()), len(set(hashes.tolist())))
    #> 4 [0, 0, 1, 1] 3
    ```
    """
    hashes, owners = _word_hashes(texts)
    total = len(hashes)
    lengths = np.bincount(owners, minlength=len(texts))
    ends = np.repeat(np.cumsum(lengths), lengths)
    at = np.arange(total)
    whole = at + size <= ends  # where a full run begins; a short text is one run, from its start
    begins = whole | ((at == ends - lengths[owners]) & (lengths[owners] < size))
    mix = np.uint64(_MIX)
    runs = np.zeros(total, dtype=np.uint64)
    for offset in range(size):
        inside = at + offset < ends
        shifted = np.zeros(total, dtype=np.uint64)
        shifted[inside] = hashes[(at + offset)[inside]]
        runs = np.where(inside, (runs ^ shifted) * mix, runs)
    runs, owners = runs[begins], owners[begins]
    order = np.lexsort((owners, runs))
    runs, owners = runs[order], owners[order]
    first = np.ones(len(runs), dtype=bool)
    first[1:] = (runs[1:] != runs[:-1]) | (owners[1:] != owners[:-1])
    return runs[first], owners[first]


def _word_hashes(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hash the words of all texts, in order, with the number of the text of each.

    A word's hash is a polynomial in its UTF-8 bytes, so that one pass over one buffer does for all.
    """
    plain = [text.lower() if text.isascii() else " ".join(words(text)) for text in texts]
    pieces = [text.encode("utf-8", "surrogatepass") for text in plain]
    every = np.frombuffer(b" ".join([*pieces, b""]), dtype=np.uint8)
    inside = _IN_WORD[every]
    before = np.concatenate([[False], inside[:-1]]) if len(inside) else inside
    starts = np.flatnonzero(inside & ~before)
    if not len(starts):
        return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    place = np.arange(len(every))
    place[starts[0] :] -= np.repeat(starts, np.diff(np.append(starts, len(every))))
    terms = np.where(inside, (every + np.uint64(1)) * _POWERS[place % _LONGEST], np.uint64(0))
    hashes = np.add.reduceat(terms, starts)
    borders = np.cumsum([len(piece) + 1 for piece in pieces])
    return hashes, np.searchsorted(borders, starts, side="right")
