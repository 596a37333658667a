"""LoCoMo (arXiv:2402.17753): long dated chats of two people, each conversation a namespace of its own, named by its `sample_id`.

A turn becomes a record with the text `speaker: text [image: caption]` (the caption only where there is one), the speaker as role, `session_N` as session, and the id
`<sample_id>/<dia_id>`. The file dates sessions only ("1:56 pm on 8 May, 2023"); turns follow one another by a second, which keeps their order.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest.items import Item, Skipped
from agentir_ray.ingest.source import Source
from agentir_ray.lexical.filters.metadata import shown

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_SESSION = re.compile(r"session_[0-9]{1,9}")
_NO_CONVERSATION = 'not a LoCoMo conversation: "sample_id" and "conversation" were expected'
_DATE = re.compile(r"(\d{1,2}):(\d{2}) ([ap]m) on (\d{1,2}) (\w+), (\d{4})", re.IGNORECASE)


def is_conversation(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("sample_id"), str | int) and isinstance(value.get("conversation"), dict)


def is_turn(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(field), str) for field in ("speaker", "dia_id", "text"))


def read(source: Source) -> Iterator[Item | Skipped]:
    """The turns of every conversation, session by session. What is none (a turn, a session, a conversation) or has no date is reported and skipped.

    A file that does not begin with a conversation is an InvalidInputError.
    """
    for number, (where, value) in enumerate(source.values(), start=1):
        if isinstance(value, Skipped):
            yield value
        elif is_conversation(value):
            sample, conversation = str(value["sample_id"]), value["conversation"]
            for name in sorted(filter(_SESSION.fullmatch, conversation), key=_session_number):
                yield from _session(sample, name, conversation[name], conversation.get(f"{name}_date_time"), f"{where}, {name}")
        elif number == 1:
            raise InvalidInputError(f"{where}: {_NO_CONVERSATION}")
        else:
            yield Skipped(where, _NO_CONVERSATION)


def _session(sample: str, name: str, turns: Any, date: Any, where: str) -> Iterator[Item | Skipped]:
    if not isinstance(turns, list):
        yield Skipped(where, "not a list of turns")
        return
    try:
        start = parse_date(date, where)
    except InvalidInputError as error:
        yield Skipped(where, str(error).removeprefix(f"{where}: "))
        return
    for order, turn in enumerate(turns):
        place = f"{where}, turn {order + 1}"
        if not is_turn(turn):
            yield Skipped(place, 'not a turn: "speaker", "dia_id" and "text" were expected')
            continue
        record = {
            "id": f"{sample}/{turn['dia_id']}",
            "text": turn_text(turn),
            "timestamp": start + timedelta(seconds=order),
            "session": name,
            "role": turn["speaker"],
            "metadata": {"dia_id": turn["dia_id"]},
        }
        yield Item(record, namespace=sample, where=place)


def turn_text(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [image: {caption}]" if caption and isinstance(caption, str) else "")


def parse_date(text: Any, where: str) -> datetime:
    """ "1:56 pm on 8 May, 2023" in UTC. By hand: `strptime` reads month names and am/pm in the process's locale."""
    match = _DATE.fullmatch(text.strip()) if isinstance(text, str) else None
    if match and match[5].lower() in MONTHS:
        hour = int(match[1]) % 12 + (12 if match[3].lower() == "pm" else 0)
        try:
            return datetime(int(match[6]), MONTHS.index(match[5].lower()) + 1, int(match[4]), hour, int(match[2]), tzinfo=UTC)
        except ValueError:
            pass
    raise InvalidInputError(f'{where}: the date is {shown(text)}; one such as "1:56 pm on 8 May, 2023" was expected')


def _session_number(name: str) -> int:
    return int(name.removeprefix("session_"))
