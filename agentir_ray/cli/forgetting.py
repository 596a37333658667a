"""`agentir forget`, `retain` and `drop`: records that some filter or list names, those that are too old or too many, and a whole namespace."""

import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import Annotated

import typer

from agentir_ray.cli.console import clean, complain, counted, date, plain, print_json, stdout, working
from agentir_ray.cli.options import Json, Namespace, Store, Where, opened, parse_where
from agentir_ray.errors import InvalidInputError, NotFoundError
from agentir_ray.types import ForgetReceipt, RetentionReceipt


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
    count = counted(len(receipt.ids), "record")
    if dry_run:
        out.print(f"{count} would be forgotten")
        return
    if not receipt.ids:
        out.print("there was nothing to forget")
        return
    out.print(f"{count} forgotten: {_what_is_purged(receipt)}")
    if receipt.not_ours:
        out.print(plain(f"not ours to remove: {receipt.not_ours}"))


def retain(
    store: Store = None,
    namespace: Namespace = "default",
    keep_last: Annotated[int | None, typer.Option("--keep-last", metavar="N", help="Keep the newest N records.")] = None,
    max_age: Annotated[str | None, typer.Option("--max-age", metavar="AGE", help="Keep what happened within this time, e.g. 90d.")] = None,
    pinned: Annotated[str | None, typer.Option("--pinned", help='What always stays: a filter in JSON, e.g. \'{"importance": {"gte": 0.9}}\'.')] = None,
    as_of: Annotated[str | None, typer.Option("--as-of", metavar="TIME", help="Count the age from then (default: now).")] = None,
    plan: Annotated[str | None, typer.Option("--plan", help="Exactly what an earlier run showed, by the plan that it printed.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without it, only say what would go.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when no file holds the texts any more.")] = False,
    as_json: Json = False,
) -> None:
    """Forget what is too old or too much, except what is pinned. Shows what would go; --apply does it."""
    sign_of_life = working("removing from the files") if wait and apply else nullcontext()
    with opened(store, namespace, write=apply) as memory, sign_of_life:
        receipt = memory.retain(keep_last=keep_last, max_age=max_age, pinned=parse_where(pinned, "--pinned"), as_of=as_of, plan=plan, dry_run=not apply, wait=wait)
    if as_json:
        print_json(asdict(receipt) | {"oldest": receipt.oldest, "newest": receipt.newest})
        return
    out = stdout()
    count = counted(receipt.count, "record")
    span = f", from {date(receipt.oldest)} to {date(receipt.newest)}" if receipt.oldest and receipt.newest else ""
    rest = f"{receipt.kept:,} stay" + (f", {receipt.pinned:,} of them because they are pinned" if receipt.pinned else "")
    if not apply:
        out.print(f"{count} would be forgotten{span}; {rest}")
        if receipt.count:
            out.print(plain(f"to forget exactly these: --plan {receipt.plan} --apply"))
    elif receipt.count:
        out.print(f"{count} forgotten{span}; {rest}")
        out.print(_what_is_purged(receipt))
    else:
        out.print(f"there was nothing to forget; {rest}")


def _what_is_purged(receipt: ForgetReceipt | RetentionReceipt) -> str:
    return "removed from every file" if receipt.purged else "hidden; removal from the files is under way (--wait waits for it)"


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
