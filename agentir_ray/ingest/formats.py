"""The formats by name, telling one from another, and reading a path of any of them."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import beam, locomo, openai_chat, own_export
from agentir_ray.ingest.export import FORMAT
from agentir_ray.ingest.items import Item, Skipped
from agentir_ray.ingest.source import Source, open_source

Importer = Callable[[Source], Iterator[Item | Skipped]]

FORMATS: Mapping[str, Importer] = MappingProxyType({"own": own_export.read, "openai": openai_chat.read, "locomo": locomo.read, "beam": beam.read})


def detect(source: Source) -> str:
    """The name of the source's format, by its first value and without consuming it; InvalidInputError when it is none of them."""
    if FORMAT.encode() in source.first_line()[:200]:  # by its bytes: the header may be the torn line
        return "own"
    value = source.first_value()
    if locomo.is_conversation(value):
        return "locomo"
    if beam.is_batch(value):
        return "beam"
    if openai_chat.is_conversation(value) or openai_chat.is_message(value):
        return "openai"
    raise InvalidInputError(f"{source.name}: not a format that is known here; name it with --format ({', '.join(FORMATS)})")


def read(path: str | Path, format: str = "auto") -> Iterator[Item | Skipped]:
    """Items of the file at `path` (`-` is standard input; a folder is taken as BEAM chats), in order.

    `format` is "auto" or a name of FORMATS. Raises InvalidInputError or NotFoundError, lazily: at the first item, or where the damage is.
    """
    if format != "auto" and format not in FORMATS:
        raise InvalidInputError(f"format is {format!r}; known are auto, {', '.join(FORMATS)}")
    if str(path) != "-" and Path(path).is_dir():
        if format not in ("auto", "beam"):
            raise InvalidInputError(f"{path}: a folder; only BEAM is read from folders")
        for file in beam.files(Path(path)):
            yield from read(file, "beam")
        return
    with open_source(path) as source:
        if not source.first_line():
            raise InvalidInputError(f"{source.name}: empty")
        yield from FORMATS[detect(source) if format == "auto" else format](source)
