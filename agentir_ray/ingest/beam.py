"""BEAM (arXiv:2510.27246): long dated chats of one person with an assistant, each chat a namespace of its own, named by the last two folders of its path (`100K/1`).

A message becomes a record with the id `<chat>/<message id>` and the session `batch_N`. The file dates a batch by the `time_anchor` of its first message ("March-15-2024");
later messages inherit it and follow one another by a second. The marker (` ->-> 1,1`) that ends messages is no part of what was said.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest.items import Item, Skipped
from agentir_ray.ingest.locomo import MONTHS
from agentir_ray.ingest.source import Source
from agentir_ray.lexical.filters.metadata import shown

_MARKER = re.compile(r"\s*->->[\s\d,/NA)]*$")
_ANCHOR = re.compile(r"(\w+)-(\d{1,2})-(\d{4})")
_NO_BATCH = 'not a BEAM batch: "batch_number" and "turns" were expected'


def is_batch(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("turns"), list) and isinstance(value.get("batch_number"), str | int)


def files(folder: Path) -> list[Path]:
    """The chat files under `folder`, one per chat: the truncated one (upstream's spelling) where there are two, for that is what the benchmark uses."""
    chats: dict[Path, Path] = {}
    for path in sorted(folder.rglob("chat*.json*")):
        if path.parent not in chats or "trunecated" in path.name:
            chats[path.parent] = path
    if not chats:
        raise InvalidInputError(f"{folder}: no chat*.json.gz in this folder or below it")
    return [chats[parent] for parent in sorted(chats, key=lambda parent: [(len(part), part) for part in parent.parts])]


def is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("id"), str | int) and all(isinstance(value.get(field), str) for field in ("role", "content"))


def read(source: Source) -> Iterator[Item | Skipped]:
    """The messages of one chat, batch by batch. What is none (a message, a turn, a batch) or has no date is reported and skipped.

    A file that does not begin with a batch is an InvalidInputError.
    """
    chat = _chat_name(source.name)
    for number, (where, batch) in enumerate(source.values(), start=1):
        if isinstance(batch, Skipped):
            yield batch
        elif is_batch(batch):
            yield from _batch(chat, batch, where)
        elif number == 1:
            raise InvalidInputError(f"{where}: {_NO_BATCH}")
        else:
            yield Skipped(where, _NO_BATCH)


def _batch(chat: str, batch: Mapping[str, Any], where: str) -> Iterator[Item | Skipped]:
    anchor, start, order = None, None, 0
    for place, message in enumerate(_messages(batch["turns"]), start=1):
        here = f"{where}, message {place}"
        if not is_message(message):
            yield Skipped(here, 'not a message: "role", "id" and "content" were expected')
            continue
        found = message.get("time_anchor") or anchor or batch.get("time_anchor")
        if found != anchor or start is None:
            try:
                anchor, start, order = found, parse_anchor(found, here), 0
            except InvalidInputError as error:
                yield Skipped(here, str(error).removeprefix(f"{here}: "))
                continue
        record = {
            "id": f"{chat}/{message['id']}",
            "text": _MARKER.sub("", message["content"]),
            "timestamp": start + timedelta(seconds=order),
            "session": f"batch_{batch['batch_number']}",
            "role": message["role"],
            "metadata": {"message_id": message["id"]},
        }
        order += 1
        yield Item(record, namespace=chat, where=here)


def _messages(turns: list[Any]) -> Iterator[Any]:
    """Those of every turn; what is no turn comes as it is, for it is no message either."""
    for turn in turns:
        if isinstance(turn, list):
            yield from turn
        else:
            yield [turn]


def parse_anchor(text: Any, where: str) -> datetime:
    """ "March-15-2024", midnight UTC."""
    match = _ANCHOR.fullmatch(text.strip()) if isinstance(text, str) else None
    if match and match[1].lower() in MONTHS:
        try:
            return datetime(int(match[3]), MONTHS.index(match[1].lower()) + 1, int(match[2]), tzinfo=UTC)
        except ValueError:
            pass
    raise InvalidInputError(f'{where}: the time anchor is {shown(text)}; one such as "March-15-2024" was expected')


def _chat_name(name: str) -> str:
    """`.../100K/1/chat.json.gz` is the chat `100K/1`; what has no folders is `chat`."""
    parts = [part for part in Path(name).parent.parts if part not in ("/", ".", "..")]
    return "/".join(parts[-2:]) or "chat"
