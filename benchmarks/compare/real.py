"""Real text as a collection: the judged ones as they are, and `passages`, all that the data folder holds, cut into passages of 56 words with real questions.

Texts become tokens by our `english` analyzer, tokens become numbers in the order of their first appearance. Terms of a question that no document has are left out, as are
questions with fewer than two terms left. The raw texts and questions stay beside the numbers, for what is measured on text (building, Pyserini-style calls).
"""

import gzip
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agentir_ray.analysis import get_analyzer
from benchmarks import datasets
from benchmarks.compare.corpora import Collection, save
from benchmarks.compare.engine import Unavailable

JUDGED = ("scifact", "cranfield", "cacm", "npl", "locomo", "xquad-en", "cmrc2018")
PASSAGE_WORDS = 56  # of MS MARCO's passages, on average
MIN_TEXT = 80  # characters: what is shorter in the data folder is a name, a label, an id or a question
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(f"[{_CJK}]|[^\\s{_CJK}]+")


def make(folder: Path, name: str, queries: int) -> Collection:
    shared = datasets.shared()
    if shared is None:
        raise Unavailable(f"{name}: no data folder (AGENTIR_SHARED)")
    if name == "passages":
        texts, questions = list(passages(_texts(shared / "data"))), _questions(shared)
        # Sampled in a seeded order, so that every source of questions has its share.
        random.Random(5).shuffle(questions)
    else:
        texts, questions = judged(shared, name)
    return _numbered(folder, name, texts, questions, queries)


def judged(shared: Path, name: str) -> tuple[list[str], list[str]]:
    """The texts and the questions of a judged collection; LoCoMo's ten chats are one here."""
    if name == "locomo":
        parts = datasets.locomo(shared)
    elif name == "cmrc2018":
        parts = [datasets.cmrc2018(shared)]
    elif name.startswith("xquad-"):
        parts = [datasets.xquad(shared, name.removeprefix("xquad-"))]
    elif name in JUDGED:
        parts = [datasets.beir(shared, name)]
    else:
        raise ValueError(f"no collection {name!r}; known: synthetic, passages, {', '.join(JUDGED)}")
    return [document.text for part in parts for document in part.documents], [query.text for part in parts for query in part.queries]


def passages(texts: Iterable[str]) -> Iterator[str]:
    """Each text cut after every 56th word; an ideograph is a word."""
    for text in texts:
        words = list(_WORD.finditer(text))
        for first in range(0, len(words), PASSAGE_WORDS):
            last = words[min(first + PASSAGE_WORDS, len(words)) - 1]
            yield text[words[first].start() : last.end()]


def _texts(data: Path) -> list[str]:
    """Every distinct string of at least MIN_TEXT characters in the data files."""
    found: dict[str, None] = {}
    for path in sorted(path for path in data.rglob("*") if re.search(r"\.(json|jsonl|tsv)(\.gz)?$", path.name)):
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        values: Any = [line.split("\t") for line in raw.decode().splitlines()] if ".tsv" in path.name else _json(raw.decode())
        found.update((text, None) for text in _strings(values) if len(text) >= MIN_TEXT)
    return list(found)


def _json(raw: str) -> Any:
    """One value, or a list of one a line: some files are the second whatever their name says."""
    try:
        return json.loads(raw)
    except json.JSONDecodeError:
        return [json.loads(line) for line in raw.splitlines() if line.strip()]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _questions(shared: Path) -> list[str]:
    """The questions of every English collection that comes with some, and BEAM's probing questions."""
    found = [question for name in JUDGED if name != "cmrc2018" for question in judged(shared, name)[1]]
    for path in sorted((shared / "data" / "beam").rglob("probing_questions.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            kinds = json.load(file)
        found += [item["question"] for items in kinds.values() for item in items if isinstance(item.get("question"), str)]
    return list(dict.fromkeys(found))


def _numbered(folder: Path, name: str, texts: Sequence[str], questions: Sequence[str], wanted: int) -> Collection:
    analyzer = get_analyzer("english")
    number: dict[str, int] = {}
    tokens, length, kept = [], [], []
    for text in texts:
        found = analyzer.tokens(text)
        if found:
            tokens.append(np.array([number.setdefault(token, len(number)) for token in found], np.uint32))
            length.append(len(found))
            kept.append(text)
    asked: list[tuple[str, Any]] = []
    for question in questions:
        terms = list(dict.fromkeys(number[token] for token in analyzer.tokens(question) if token in number))
        if len(terms) >= 2 and len(asked) < wanted:
            asked.append((question, np.array(terms, np.int64)))
    return save(folder, name, np.concatenate(tokens), np.array(length, np.int64), [terms for _, terms in asked], len(number), kept, [question for question, _ in asked])
