"""`agentir forget` and `agentir drop`: records that some filter or list names, and a whole namespace."""

import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import Annotated

import typer

from agentir_ray.cli.console import clean, complain, plain, print_json, stdout, working
from agentir_ray.cli.options import Json, Namespace, Store, Where, opened, parse_where
from agentir_ray.errors import InvalidInputError, NotFoundError


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
    sign_of_life = working("removing from the files") if wait else nullcontext()
    with opened(store, namespace, write=not dry_run) as memory, sign_of_life:
        receipt = memory.forget(parse_where(where), ids=ids or None, dry_run=dry_run, wait=wait)
    if as_json:
        print_json(asdict(receipt))
        return
    out = stdout()
    for id in receipt.ids:
        out.print(plain(id))
    count = f"{len(receipt.ids):,} record{'s' if len(receipt.ids) != 1 else ''}"
    if dry_run:
        out.print(f"{count} would be forgotten")
        return
    if not receipt.ids:
        out.print("there was nothing to forget")
        return
    purged = "removed from every file" if receipt.purged else "hidden; removal from the files is under way (--wait waits for it)"
    out.print(f"{count} forgotten: {purged}")
    if receipt.not_ours:
        out.print(plain(f"not ours to remove: {receipt.not_ours}"))


def drop(
    store: Store = None,
    namespace: Namespace = "default",
    below: Annotated[bool, typer.Option("--below", help="With all namespaces below it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a namespace with everything in it."""
    with opened(store, namespace, write=True) as memory:
        names = [name for name in memory.namespaces(namespace) if below or name == namespace]
        if not names:
            raise NotFoundError(f"there is no namespace {namespace!r}")
        what = f"namespace {names[0]!r}" if len(names) == 1 else f"{len(names)} namespaces ({', '.join(names)})"
        if not yes:
            if not sys.stdin.isatty():
                raise InvalidInputError(f"drop deletes {what} for good; confirm with --yes")
            if not typer.confirm(f"Delete {clean(what)} for good?"):
                complain("nothing was deleted")
                raise typer.Exit(1)
        for name in names:
            memory.drop(name)
    if as_json:
        print_json({"dropped": names})
    else:
        stdout().print(plain(f"dropped {', '.join(names)}"))
