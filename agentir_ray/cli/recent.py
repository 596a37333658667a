"""`agentir recent`: the newest records, page by page."""

from typing import Annotated

import typer

from agentir_ray.cli.console import Rows, date, plain, print_json, stdout
from agentir_ray.cli.options import Json, Namespace, Role, Session, Since, Store, Until, Where, opened, parse_where
from agentir_ray.cli.snippet import snippet
from agentir_ray.ingest import record_to_dict


def recent(
    store: Store = None,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option("--limit", "-l", help="Records on a page.")] = 20,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where the page before ended.")] = None,
    where: Where = None,
    session: Session = None,
    role: Role = None,
    since: Since = None,
    until: Until = None,
    as_json: Json = False,
) -> None:
    """Show the newest records first."""
    with opened(store, namespace) as memory:
        page = memory.recent(limit, cursor=cursor, where=parse_where(where), session=session, role=role, since=since, until=until)
    if as_json:
        print_json({"records": [record_to_dict(record) for record in page.records], "cursor": page.cursor})
        return
    out = stdout()
    rows = [(date(record.timestamp), record.session or "", record.role or "", plain(record.id, "dim"), snippet(record.text)) for record in page.records]
    out.print(Rows(["date", "session", "role", "id", ("text", "wrap")], rows) if rows else plain("no records"))
    if page.cursor is not None:
        out.print(f"more: --cursor {page.cursor}")
