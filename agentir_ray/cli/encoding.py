"""`agentir encode` and `reembed`: vectors for the records that have none yet, and other ones for all."""

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from agentir_ray.cli.console import animates, plain, print_json, stderr, stdout
from agentir_ray.cli.options import Encoder, Json, Namespace, SparseEncoder, Store, opened
from agentir_ray.client.memory import Memory
from agentir_ray.errors import EncoderMissingError, InvalidInputError

_LOOK_S = 0.5


def encode(store: Store = None, namespace: Namespace = "default", encoder: Encoder = None, sparse_encoder: SparseEncoder = None, as_json: Json = False) -> None:
    """Give all records of a namespace their vectors; those that have them stay as they are."""
    _check(encoder, sparse_encoder)
    with opened(store, namespace, write=True, encoder=encoder, sparse_encoder=sparse_encoder) as memory:
        finish_encoding(memory, namespace, as_json)
        _report(memory, as_json)


def reembed(store: Store = None, namespace: Namespace = "default", encoder: Encoder = None, sparse_encoder: SparseEncoder = None, as_json: Json = False) -> None:
    """Encode all records of a namespace anew, with these encoders. An interrupted call goes on where it was."""
    _check(encoder, sparse_encoder)
    with opened(store, namespace, write=True, encoder=encoder, sparse_encoder=sparse_encoder) as memory, _progress("encoding anew", as_json) as progress:
        task = progress.add_task("entries", total=None)
        memory.reembed(progress=lambda done, total: progress.update(task, completed=done, total=total))
        _report(memory, as_json)


def finish_encoding(memory: Memory, namespace: str, as_json: bool) -> None:
    """Wait, showing how far it is. Raises what `wait_encoded` does."""
    memory = memory.use(namespace)
    with _progress("encoding", as_json) as progress:
        task = progress.add_task("entries", total=None)
        while not memory.wait_encoded(_LOOK_S):
            channels = (memory.stats()["namespace"] or {"channels": {}})["channels"].values()
            total = max((told["records"] for told in channels), default=None)
            progress.update(task, completed=min((told["encoded_records"] for told in channels), default=0), total=total)


def _check(encoder: str | None, sparse_encoder: str | None) -> None:
    if not (encoder or sparse_encoder):
        raise EncoderMissingError("give --encoder or --sparse-encoder (or set AGENTIR_ENCODER, AGENTIR_SPARSE_ENCODER); `agentir doctor` shows which are installed")


def _report(memory: Memory, as_json: bool) -> None:
    found = memory.stats()["namespace"]
    if found is None:
        raise InvalidInputError(f"there is no namespace {memory.namespace!r}")
    if as_json:
        print_json(found["channels"])
        return
    for name, told in found["channels"].items():
        refused = f", {told['refused']:,} refused" if told["refused"] else ""
        stdout().print(plain(f"{name}: {told['encoded_records']:,} of {told['records']:,} records by {told['encoder']}{refused}"))


def _progress(what: str, as_json: bool) -> Progress:
    console = stderr()
    return Progress(TextColumn(what), BarColumn(), TimeRemainingColumn(), console=console, transient=True, disable=as_json or not animates(console))
