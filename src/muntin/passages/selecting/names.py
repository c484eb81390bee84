"""Find what a passage is called: title, heading, file, code definition, identifier, first subject.

A passage that defines "Ada Lovelace" or `parse_header` answers questions that mention this name,
and completes passages that mention it. No model is needed: names come from metadata, from the first
lines and from definitions in code or JSON. A phrase is a name or a text as stemmed words with
spaces around, so that `phrase in text` matches whole words in any inflection, punctuation and case.
Generic titles ("Introduction", "README") are not names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.text import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from muntin.passages.candidates import Candidate

__all__ = ("is_title", "names_of", "phrase")

_TITLES = ("title", "name", "heading", "header", "section", "Header 1", "Header 2", "Header 3")
"""Metadata keys whose value is a name."""
_PATHS = ("source", "file_name", "filename", "file_path", "path", "url")
"""Metadata keys whose value is a path; the name is the stem of its last part."""
_MOST = 12
"""Names per passage; the first ones found are kept."""
_HEAD = 400
"""Characters in which the title line and the first subject are looked for."""
_DEFINED_IN = 20_000
"""Characters in which definitions of code and JSON are looked for."""
_TITLE_WORDS = 14
_SUBJECT_WORDS = 8

_SENTENCE_END = (".", "!", "?", "。", "！", "？", ";", ",", "{", ":")
_MARKUP = re.compile(r"^[\s#>*=\-•]+|[\s#*=]+$")
_QUALIFIER = re.compile(r"\s*[(\[（【][^)\]）】]*[)\]）】]\s*$")
_SEPARATOR = re.compile(r"\s+[|–—›»>:·-]+\s+|:\s+|：| :: ")
_ARTICLE = re.compile(
    r"\A(?:the|an?|this|that|these|those|der|die|das|ein|eine|les?|la|l'|el|los|las|une?|il|lo|i|gli)\s+",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(.{2,90}?)(?:[,;:(\[（，、：]|\s[–—-]\s|是|は|\s(?:is|was|are|were|has|had|refers|means|"
    r"ist|war|sind|waren|hat|bezeichnet|est|était|sont|es|son|fue|era|sono|è|é|foi|это|был|была)\b)"
)
_DEFINITION = re.compile(
    r"^[ \t]*(?:export |public |private |static |async |pub )*"
    r"(?:def|class|function|func|fn|interface|struct|enum|trait|type|CREATE TABLE)\s+"
    r"([A-Za-z_]\w{2,})",
    re.MULTILINE,
)
_IDENTIFIER = re.compile(r'"(?:\w*_)?(?:id|key|name|title|number)"\s*:\s*"([^"\n]{3,80})"')

_GENERIC = frozenset(
    re.findall(
        r"\S+",
        """
        home index readme introduction intro overview summary abstract conclusion
        contents appendix glossary license licence changelog contributing faq notes note
        page document untitled chapter section part table figure references bibliography
        about contact help docs documentation general information details description
        example examples usage installation getting started main test tests data text
        title name content untitled einleitung übersicht zusammenfassung inhalt
        inhaltsverzeichnis anhang startseite allgemeines accueil sommaire résumé annexe
        inicio introducción resumen índice 首页 简介 概述 目录 摘要 目次 概要 はじめに
        """,
    )
)
"""Titles that any document may have."""

_FOLDED = bytes(
    ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else 32 for code in range(256)
)
"""Lower case of ASCII letters and digits; a space for all else. As bytes, six times as fast."""
_ENDINGS = ("ern", "en", "er", "em", "es", "e", "n", "s")
_CYRILLIC_ENDING = re.compile(r"(?<=[\u0400-\u04ff]{4})[аеёиоуыэюяйьмх]{1,3}$")
_LEAST_STEM = 4
_LEAST_NAME = 4


class _Stems(dict[str, str]):
    """Stems of words, each computed once per process until the cache is full."""

    def __missing__(self, word: str) -> str:
        if len(self) > 100_000:
            self.clear()
        stem = self[word] = _stem(word)
        return stem


def _stem(word: str) -> str:
    """Cut the inflection off a word; words of fewer than five letters stay as they are."""
    if len(word) <= _LEAST_STEM or not word.isalpha():
        return word
    if word[-1] > "z":
        return _CYRILLIC_ENDING.sub("", word)
    if word[-1] == "s" and len(word) > _LEAST_STEM + 1:  # "Reiters": plural and genitive first
        word = word[:-1]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _LEAST_STEM:
            word = word[: -len(ending)]
            break
    return word[:-1] + "i" if word[-1] == "y" else word


_stems = _Stems()


def phrase(text: str) -> str:
    """Return a text as stemmed words, with a space before and after each.

    ```python
    from muntin.passages.selecting.names import phrase

    print(phrase("Blauer Reiter") in phrase("Die Bilder des Blauen Reiters."))
    #> True
    ```
    """
    if text.isascii():
        found = text.encode("ascii").translate(_FOLDED).decode("ascii").split()
    else:
        found = words(text)
    return f" {' '.join(map(_stems.__getitem__, found))} "


def names_of(candidate: Candidate) -> tuple[str, ...]:
    """Return what a passage is called, as phrases: at most twelve, without generic titles.

    ```python
    from muntin import Candidate
    from muntin.passages.selecting.names import names_of

    print(names_of(Candidate("Ada Lovelace (1815-1852) wrote the first program.")))
    #> (' ada lovelac ',)
    print(names_of(Candidate("...", metadata={"source": "docs/travel_policy.md"})))
    #> (' travel polici ',)
    ```
    """
    found: dict[str, None] = {}
    for name in _raw_names(candidate):
        named = phrase(name)
        if named not in found and _is_specific(named):
            found[named] = None
            if len(found) == _MOST:
                break
    return tuple(found)


def _is_specific(named: str) -> bool:
    """Return whether a phrase can point to one passage: long enough and not a generic title."""
    letters = len(named) - 2
    if letters < _LEAST_NAME and (named.isascii() or letters < 2):
        return False
    if named[1:-1].isdigit():
        return False
    return any(word not in _GENERIC_STEMS for word in named.split())


def _raw_names(candidate: Candidate) -> Iterator[str]:
    if candidate.metadata:
        yield from _from_metadata(candidate.metadata)
    content = candidate.content
    if candidate.id and content.startswith(candidate.id):  # as `muntin assemble` writes them
        content = content[len(candidate.id) :].lstrip(": ")
    head = content[:_HEAD].lstrip()
    first, _, rest = head.partition("\n")
    body = first
    if rest and is_title(first):
        yield from _title_names(first)
        body = rest.lstrip()
    yield from _subject(body)
    if "\n" in content or "{" in head:
        searched = content[:_DEFINED_IN]
        yield from _DEFINITION.findall(searched)
        if '": ' in searched or '":"' in searched:
            yield from _IDENTIFIER.findall(searched)


def _from_metadata(metadata: Mapping[str, object]) -> Iterator[str]:
    for key in _TITLES:
        value = metadata.get(key)
        if isinstance(value, str) and 0 < len(value) <= _HEAD:
            yield from _title_names(value)
    for key in _PATHS:
        value = metadata.get(key)
        if isinstance(value, str) and 0 < len(value) <= _HEAD:
            last = re.split(r"[/\\]", value.split("?")[0].rstrip("/\\"))[-1]
            yield last.rsplit(".", 1)[0] if "." in last[1:] else last


def is_title(line: str) -> bool:
    """Return whether a first line is a title: short, and not the end of a sentence."""
    line = line.strip()
    return (
        0 < len(line) <= 120
        and line.count(" ") < _TITLE_WORDS
        and not line.endswith(_SENTENCE_END)
        and line[0] not in "{[<"
    )


def _title_names(title: str) -> Iterator[str]:
    """Yield a title without markup and qualifier, and its parts ("Post - Letters")."""
    whole = _QUALIFIER.sub("", _MARKUP.sub("", title))
    yield whole
    parts = _SEPARATOR.split(whole)
    if len(parts) > 1:
        yield from parts


def _subject(body: str) -> Iterator[str]:
    """Yield what a first sentence defines: "Ada Lovelace was ..." names Ada Lovelace."""
    match = _SUBJECT.match(body)
    if match is None:
        return
    subject = _ARTICLE.sub("", _MARKUP.sub("", match[1]), count=1).strip(" \"'“”„«»「」")
    cased = subject.lower() != subject.upper()
    if subject.count(" ") >= _SUBJECT_WORDS or (cased and subject.lower() == subject):
        return
    if subject.casefold() not in _FUNCTION_SUBJECTS:
        yield subject


_FUNCTION_SUBJECTS = frozenset(
    re.findall(
        r"\S+",
        """
        there they when where what which while with within without after before since
        although however then these those this that here also such some many most each
        both other our your their his her he she it we you i if in on at as for from and
        but or so no yes please note thus once under over dort hier dies diese dieser
        dieses wenn weil aber auch nach seit sie wir ihr er es man elle nous vous ils
        elles ceci cela ella nosotros ellos esto
        """,
    )
)
_GENERIC_STEMS = frozenset(_stem(word) for word in _GENERIC) | _GENERIC
