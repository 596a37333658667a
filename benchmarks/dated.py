"""Chats whose records have dates and whose questions have gold records: LoCoMo (its gold patched by the audit), BEAM (100K and 1M), and MADial-Bench (English and Chinese).

A chat is the records of one person or pair in the order of their time, as `Memory.import_` takes them (written when they happened), and the questions that are asked at its end:
a second after the last record, for no set dates its questions. It knows no store. The data lies where `benchmarks.datasets.shared` says; its READMEs give source and licence.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentir_ray.ingest import beam, locomo
from agentir_ray.ingest.items import Skipped
from agentir_ray.ingest.source import open_source
from agentir_ray.types import to_time_us

ADVERSARIAL = 5  # LoCoMo's category of questions without an answer
LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Question:
    """`gold` are the ids of the records that answer it, at least one; `kind` is the data set's own word for what is asked."""

    text: str
    gold: frozenset[str]
    kind: str


@dataclass(frozen=True)
class Chat:
    name: str
    records: tuple[Mapping[str, Any], ...]
    questions: tuple[Question, ...]
    times_us: Mapping[str, int]  # of each record, by its id
    occasions: Mapping[str, object]  # the session of each record, or its day where there are none

    @property
    def asked_us(self) -> int:
        return max(self.times_us.values()) + SECOND_US


def chat_of(name: str, records: list[Mapping[str, Any]], questions: list[Question]) -> Chat:
    """Questions lose the gold that no record has, and are left out when none is left: BEAM's abstentions, four of LoCoMo's, one whose evidence the audit refutes."""
    times = {record["id"]: to_time_us(record["timestamp"]) for record in records}
    known = (Question(question.text, question.gold & times.keys(), question.kind) for question in questions)
    written = tuple({**record, "created_at": record["timestamp"]} for record in records)
    return Chat(name, written, tuple(q for q in known if q.gold), times, {record["id"]: record.get("session") or times[record["id"]] for record in records})


def locomo_chats(folder: Path) -> list[Chat]:
    """Ten chats of two people; questions of categories 1 to 4, their evidence replaced by the audit's (`correct_evidence`) where it found an error of any kind."""
    path = folder / "data" / "locomo" / "locomo10.json.gz"
    audited = {error["question_id"]: error["correct_evidence"] for error in _json(path.with_name("locomo10_label_errors.json.gz"))}
    records: dict[str, list[Mapping[str, Any]]] = {}
    with open_source(path) as source:
        for item in locomo.read(source):
            if isinstance(item, Skipped):
                raise ValueError(f"{item.where}: {item.what}")
            records.setdefault(item.namespace, []).append(item.record)
    chats = []
    for number, conversation in enumerate(_json(path)):
        sample = conversation["sample_id"]
        questions = []
        for index, asked in enumerate(conversation["qa"]):
            if asked["category"] != ADVERSARIAL:
                cited = audited.get(f"locomo_{number}_qa{index}", asked.get("evidence") or ())
                gold = frozenset(f"{sample}/{part}" for one in cited for part in one.replace(";", " ").split())
                questions.append(Question(asked["question"], gold, LOCOMO_KINDS[asked["category"]]))
        chats.append(chat_of(sample, records[sample], questions))
    return chats


def beam_chats(folder: Path, size: str) -> list[Chat]:
    """Chats of one person with an assistant; `size` is 100K or 1M (tokens)."""
    chats = []
    for path in beam.files(folder / "data" / "beam" / size):
        with open_source(path) as source:
            items = list(beam.read(source))
        skipped = next((item for item in items if isinstance(item, Skipped)), None)
        if skipped:
            raise ValueError(f"{skipped.where}: {skipped.what}")
        name = f"{size}/{path.parent.name}"
        questions = [
            Question(asked["question"], frozenset(f"{name}/{number}" for number in _numbers(asked.get("source_chat_ids"))), kind)
            for kind, several in _json(path.with_name("probing_questions.json.gz")).items()
            for asked in several
        ]
        chats.append(chat_of(name, [item.record for item in items if not isinstance(item, Skipped)], questions))
    return chats


def madial_chats(folder: Path, language: str) -> list[Chat]:
    """The events of two children, each a chat, dated by day (noon); `language` is en or zh. The question is the dialogue up to the turn in which the assistant should remember.

    The English file leaves out whose an event is: the Chinese one, which has the same ids and days, tells.
    """
    root = folder / "data" / "madial_bench"
    owners = {event: facts["user-id"] for event, facts in _events(root, "zh")}
    records: dict[int, list[Mapping[str, Any]]] = {}
    for event, facts in sorted(_events(root, language), key=lambda pair: (pair[1]["time"], int(pair[0]))):
        noon = datetime.strptime(facts["time"], "%Y-%m-%d").replace(hour=12, tzinfo=UTC)
        records.setdefault(owners[event], []).append({"id": event, "text": facts["event"], "timestamp": noon})
    questions: dict[int, list[Question]] = {}
    for line in (root / f"MADial-Bench-{language}-dialogue.json").read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        said = [turn.strip() for turn in dialogue["dialogue"][1 : min(dialogue["test-turn"])]]  # the first marks the beginning
        questions.setdefault(dialogue["user-id"], []).append(Question("\n".join(said), frozenset(map(str, dialogue["relevant-id"])), "dialogue"))
    return [chat_of(f"{language}-{owner}", records[owner], questions[owner]) for owner in sorted(records)]


def _events(root: Path, language: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for line in (root / f"MADial-Bench-{language}-memory.json").read_text(encoding="utf-8").splitlines():
        yield from json.loads(line).items()


def _numbers(gold: Any) -> Iterator[int]:
    """The message numbers of BEAM's gold: a list, lists of lists, or a dictionary of them."""
    if isinstance(gold, Mapping):
        gold = list(gold.values())
    if isinstance(gold, list):
        for part in gold:
            yield from _numbers(part)
    elif isinstance(gold, int):
        yield gold


def _json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)
