"""Judged collections for the benchmarks, as plain values, from the data folder (`AGENTIR_SHARED`, by default `shared` beside the repository), and the two measures that are
reported.

A collection is documents in the order of their time, queries, and which documents answer each query. It knows no engine. The data is not part of this repository; where it lies
is asked by `shared()`.
"""

import gzip
import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentir_ray.ingest import beam as beam_format
from agentir_ray.ingest.items import Item
from agentir_ray.ingest.source import open_source


@dataclass(frozen=True)
class Document:
    id: str
    text: str
    timestamp: datetime
    session: str | None = None


@dataclass(frozen=True)
class Query:
    """`gold` maps the ids of the documents that answer it to their grades."""

    text: str
    gold: Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    name: str
    documents: Sequence[Document]
    queries: Sequence[Query]


def shared() -> Path | None:
    """The data folder, or None where there is none."""
    folder = Path(os.environ.get("AGENTIR_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    return folder if folder.is_dir() else None


def beir(folder: Path, name: str) -> Judged:
    """A collection in the BEIR layout with its test judgements; `name` is scifact, cranfield, cacm or npl."""
    root = folder / "data" / name
    with gzip.open(root / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    documents = [Document(row["_id"], f"{row.get('title', '')} {row['text']}".strip(), _nth_minute(i)) for i, row in enumerate(rows)]
    gold: dict[str, dict[str, float]] = {}
    for line in (root / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query_id, document_id, grade = line.split("\t")
        if float(grade) > 0:
            gold.setdefault(query_id, {})[document_id] = float(grade)
    texts = {row["_id"]: row["text"] for row in map(json.loads, (root / "queries.jsonl").read_text(encoding="utf-8").splitlines())}
    return Judged(name, documents, [Query(texts[query_id], grades) for query_id, grades in gold.items()])


def locomo(folder: Path) -> list[Judged]:
    """One collection a chat: its turns, and the questions of categories 1 to 4 that cite turns which exist (1,535 in all)."""
    with gzip.open(folder / "data" / "locomo" / "locomo10.json.gz", "rt", encoding="utf-8") as file:
        chats = json.load(file)
    return [_chat(f"conv-{number}", chat) for number, chat in enumerate(chats, 1)]


def _chat(name: str, chat: Mapping[str, Any]) -> Judged:
    conversation = chat["conversation"]
    documents = []
    for session in range(1, len(conversation)):
        when = conversation.get(f"session_{session}_date_time")
        for turn, said in enumerate(conversation.get(f"session_{session}") or ()):
            caption = f" [image: {said['blip_caption']}]" if said.get("blip_caption") else ""
            time = datetime.strptime(when, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) + timedelta(seconds=turn)
            documents.append(Document(said["dia_id"], f"{said['speaker']}: {said['text']}{caption}", time, f"session_{session}"))
    known = {document.id for document in documents}
    queries = []
    for question in chat["qa"]:
        cited = [part for item in question.get("evidence") or () for part in item.replace(";", " ").split()]
        gold = {part: 1.0 for part in cited if part in known}
        if question["category"] != 5 and gold:
            queries.append(Query(question["question"], gold))
    return Judged(name, documents, queries)


def beam(folder: Path, chats: int) -> list[Judged]:
    """One collection a chat of BEAM-100K, the first `chats` of 20: its messages, and the questions that cite messages (17 or 18 a chat)."""
    return [_beam_chat(folder / "data" / "beam" / "100K" / str(number)) for number in range(1, chats + 1)]


def _beam_chat(folder: Path) -> Judged:
    (path,) = beam_format.files(folder)
    with open_source(path) as source:
        records = [item.record for item in beam_format.read(source) if isinstance(item, Item)]
    documents = [Document(str(record["metadata"]["message_id"]), record["text"], record["timestamp"], record["session"]) for record in records]
    with gzip.open(folder / "probing_questions.json.gz", "rt", encoding="utf-8") as lines:
        kinds = json.load(lines)
    asked = [(question["question"], {str(cited): 1.0 for cited in _leaves(question.get("source_chat_ids"))}) for questions in kinds.values() for question in questions]
    return Judged(f"beam-100k-{folder.name}", documents, [Query(text, gold) for text, gold in asked if gold])


def _leaves(value: Any) -> list[Any]:
    """Message ids, which are listed, or listed by what they are for."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for each in value for leaf in _leaves(each)] if isinstance(value, list) else [] if value is None else [value]


def cmrc2018(folder: Path) -> Judged:
    """Chinese: each question is answered by the paragraph that it was asked about."""
    return _squad("cmrc2018", folder / "data" / "cmrc2018" / "cmrc2018_dev.json.gz")


def xquad(folder: Path, language: str) -> Judged:
    """The same questions and paragraphs in each of 12 languages; `language` is a two-letter code."""
    return _squad(f"xquad-{language}", folder / "data" / "xquad" / f"xquad.{language}.json.gz")


def _squad(name: str, path: Path) -> Judged:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        paragraphs = [paragraph for article in json.load(file)["data"] for paragraph in article["paragraphs"]]
    documents = [Document(f"p{i}", paragraph["context"], _nth_minute(i)) for i, paragraph in enumerate(paragraphs)]
    queries = [Query(qa["question"], {f"p{i}": 1.0}) for i, paragraph in enumerate(paragraphs) for qa in paragraph["qas"]]
    return Judged(name, documents, queries)


def _nth_minute(number: int) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(minutes=number)


def ndcg(ranked: Sequence[str], gold: Mapping[str, float], k: int = 10) -> float:
    """nDCG@k with linear gains, as trec_eval has it."""
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(gold.values(), reverse=True)[:k]))
    return sum(gold.get(document, 0.0) / math.log2(rank + 2) for rank, document in enumerate(ranked[:k])) / ideal if ideal else 0.0


def recall(ranked: Sequence[str], gold: Collection[str], k: int = 10) -> float:
    """The share of the answering documents that are among the first k."""
    return len(set(ranked[:k]) & set(gold)) / len(gold)
