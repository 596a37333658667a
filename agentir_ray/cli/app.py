"""The list of commands, and how every one of them ends.

An AgentIRError becomes one line on standard error and its `exit_code`; a wrong option ends with 2, an interrupt with 130, a reader that closed the pipe quietly. No traceback
reaches the user for anything that the package foresaw.
"""

import errno
import sys
from importlib.metadata import version
from typing import Annotated, Any, TextIO

import typer
from typer.core import TyperGroup

from agentir_ray.cli import care, demo, encoding, forgetting, partitioning, transfer, write
from agentir_ray.cli import recent as recent_records
from agentir_ray.cli import search as searching
from agentir_ray.cli.console import complain
from agentir_ray.errors import AgentIRError, StoreError


class Commands(TyperGroup):
    """Translates errors for every command, also when called through the tests' runner."""

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here, so that a closed pipe is met where it is handled, and not at the interpreter's exit
            return result
        except AgentIRError as error:
            complain(str(error))
            raise typer.Exit(error.exit_code) from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            complain(f"the system refused: {error}")
            raise typer.Exit(StoreError.exit_code) from None

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the list below, which is that of use."""
        return list(self.commands)


app = typer.Typer(name="agentir", cls=Commands, help="The memory of an LLM agent.", no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agentir {version('agentir-ray')}")
        raise typer.Exit


@app.callback()
def _root(show: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")] = False) -> None:
    pass


app.command()(write.add)
app.command()(searching.search)
app.command()(recent_records.recent)
app.command("import")(transfer.import_)
app.command()(transfer.export)
app.command()(transfer.backup)
app.command()(forgetting.forget)
app.command()(forgetting.retain)
app.command()(forgetting.drop)
app.command()(encoding.encode)
app.command()(encoding.reembed)
app.command()(partitioning.repartition)
app.command()(care.stats)
app.command()(care.verify)
app.command()(care.doctor)
app.command("demo")(demo.demo)


def main() -> None:
    """The entry point of the script `agentir`."""
    for stream in (sys.stdout, sys.stderr):
        _print_anything(stream)
    app()


def _print_anything(stream: TextIO) -> None:
    """Texts hold every script; a terminal of another encoding shows an escape instead of ending the command."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="backslashreplace")
