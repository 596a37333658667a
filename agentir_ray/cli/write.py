"""`agentir add`: one record, durable and searchable when the command ends."""

import sys
from typing import Annotated

import typer

from agentir_ray.cli.console import date, print_json, stdout
from agentir_ray.cli.options import Encoder, Json, Namespace, SparseEncoder, Store, opened, parse_metadata
from agentir_ray.errors import InvalidInputError
from agentir_ray.ingest import record_to_dict


def add(
    text: Annotated[str, typer.Argument(help="What to remember; - reads standard input.")],
    store: Store = None,
    namespace: Namespace = "default",
    id: Annotated[str | None, typer.Option("--id", help="Your own id: adding it again stores nothing twice.")] = None,
    timestamp: Annotated[str | None, typer.Option("--timestamp", metavar="TIME", help="When it happened (ISO 8601, UTC); default: now.")] = None,
    session: Annotated[str | None, typer.Option("--session")] = None,
    role: Annotated[str | None, typer.Option("--role")] = None,
    importance: Annotated[float, typer.Option("--importance", help="0 to 1.")] = 0.0,
    expires_at: Annotated[str | None, typer.Option("--expires-at", metavar="TIME", help="Until when it holds.")] = None,
    supersedes: Annotated[str | None, typer.Option("--supersedes", metavar="ID", help="The record that this one replaces.")] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", help="A JSON object.")] = None,
    encoder: Encoder = None,
    sparse_encoder: SparseEncoder = None,
    as_json: Json = False,
) -> None:
    """Add one record."""
    if text == "-":
        text = _standard_input()
    with opened(store, namespace, write=True, create=True, encoder=encoder, sparse_encoder=sparse_encoder) as memory:
        record = memory.add(
            text,
            id=id,
            timestamp=timestamp,
            session=session,
            role=role,
            importance=importance,
            expires_at=expires_at,
            supersedes=supersedes,
            metadata=parse_metadata(metadata),
        )
        memory.wait_encoded()
    if as_json:
        print_json(record_to_dict(record))
    else:
        stdout().print(f"added {record.id} at {date(record.timestamp)}")


def _standard_input() -> str:
    try:
        return sys.stdin.read().removesuffix("\n")  # which `echo` and editors add
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"standard input is not {error.encoding} at byte {error.start:,}") from None
