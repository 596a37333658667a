"""The options that several commands share, and opening the store that they name."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from platformdirs import user_data_path

from agentir_ray.client.memory import Memory
from agentir_ray.errors import InvalidFilterError, InvalidInputError, NotFoundError

_NAMED = 8  # namespaces in a message

Store = Annotated[Path | None, typer.Option("--store", envvar="AGENTIR_STORE", help="The store's folder (default: the user's data directory).", show_default=False)]
SPILL_VARIABLE = "AGENTIR_SPILL"  # the folder or URL that the store spills to, the same for all commands: so no option of each
Namespace = Annotated[str, typer.Option("--namespace", "-n", envvar="AGENTIR_NAMESPACE", help="Whose memory, e.g. acme/alice.")]
Encoder = Annotated[str | None, typer.Option("--encoder", envvar="AGENTIR_ENCODER", metavar="NAME", help="What gives records vectors: a name, or a model's folder.")]
SparseEncoder = Annotated[str | None, typer.Option("--sparse-encoder", envvar="AGENTIR_SPARSE_ENCODER", metavar="NAME", help="What gives records weights of terms.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Where = Annotated[str | None, typer.Option("--where", help='A filter in JSON, e.g. \'{"session": {"eq": "s12"}}\'.')]
Session = Annotated[str | None, typer.Option("--session", help="Only this session.")]
Role = Annotated[str | None, typer.Option("--role", help="Only this role.")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only what happened at this time or later (ISO 8601, UTC).")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only what happened at this time or earlier.")]


def default_store() -> Path:
    """In the user's data directory: what lies in the package's folder goes with its next update."""
    return user_data_path("agentir")


@contextmanager
def opened(store: Path | None, namespace: str, *, write: bool = False, create: bool = False, encoder: str | None = None, sparse_encoder: str | None = None) -> Iterator[Memory]:
    """The store, for reading unless told otherwise: any number of readers may be there beside the one writer. AGENTIR_SPILL says where it spills to.

    When a namespace is not found, the error names those that are: below it, or else in the store.
    """
    path = store or default_store()
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    spill = os.environ.get(SPILL_VARIABLE) or None
    with Memory.open(
        os.fspath(path), namespace=namespace, read_only=not write, create=create, spill=spill, encoder=encoder or None, sparse_encoder=sparse_encoder or None
    ) as memory:  # fmt: skip
        try:
            yield memory
        except NotFoundError as error:
            raise NotFoundError(f"{error}{_what_is_there(memory, namespace)}") from None


def _what_is_there(memory: Memory, namespace: str) -> str:
    names = memory.namespaces(namespace)
    if namespace in names:  # something else was not found
        return ""
    names, where = (names, "below it are") if names else (memory.namespaces(), "the store has")
    return f"; {where} {', '.join(names[:_NAMED]) or 'none yet'}{f' and {len(names) - _NAMED} more' if len(names) > _NAMED else ''}"


def parse_where(text: str | None, option: str = "--where") -> dict[str, Any] | None:
    """The filter in an option's JSON; what it says is judged by the engine."""
    return None if text is None else _parse_object(text, option, InvalidFilterError)


def parse_metadata(text: str | None) -> dict[str, Any] | None:
    return None if text is None else _parse_object(text, "--metadata", InvalidInputError)


def _parse_object(text: str, option: str, error: type[InvalidInputError]) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as reason:
        raise error(f"{option} is not JSON: {reason}") from None
    if not isinstance(value, dict):
        raise error(f"{option} is not a JSON object")
    return value
