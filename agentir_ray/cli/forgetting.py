"""`agentir forget` and `agentir drop`: records that some filter or list names, and a whole namespace."""

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from agentir_ray.cli.console import complain, plain, print_json, stdout
from agentir_ray.cli.options import Json, Namespace, Store, Where, opened, parse_where
from agentir_ray.errors import InvalidInputError


def forget(
    store: Store = None,
    namespace: Namespace = "default",
    where: Where = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="A record's id; may be given several times.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be forgotten.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when no file holds the texts any more.")] = False,
    as_json: Json = False,
) -> None:
    """Forget records: hidden at once, then removed from every file."""
    if where is None and not ids:
        raise InvalidInputError("say what to forget: --where or --id (a whole namespace is left with `agentir drop`)")
    with opened(store, namespace, write=True) as memory:
        receipt = memory.forget(parse_where(where), ids=ids or None, dry_run=dry_run, wait=wait)
    if as_json:
        print_json(asdict(receipt))
        return
    out = stdout()
    for id in receipt.ids:
        out.print(plain(id))
    if dry_run:
        out.print(f"{len(receipt.ids)} records would be forgotten")
        return
    purged = "removed from every file" if receipt.purged else "hidden; removal from the files is under way (--wait waits for it)"
    out.print(f"{len(receipt.ids)} records forgotten: {purged}")
    if receipt.not_ours:
        out.print(plain(f"not ours to remove: {receipt.not_ours}"))


def drop(
    store: Store = None,
    namespace: Namespace = "default",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a namespace with everything in it."""
    with opened(store, namespace, write=True) as memory:
        if not yes:
            if not sys.stdin.isatty():
                raise InvalidInputError(f"drop deletes namespace {namespace!r} for good; confirm with --yes")
            if not typer.confirm(f"Delete namespace {namespace!r} for good?"):
                complain("nothing was deleted")
                raise typer.Exit(1)
        memory.drop()
    stdout().print(plain(f"dropped {namespace}"))
