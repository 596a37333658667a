"""All records of a namespace encoded anew, by other encoders, while it is written to and searched.

The ledger gets the new vectors beside the old ones, which serve meanwhile; one manifest swap exchanges all sidecars; then the old rows go. A crash before the swap leaves the old
vectors serving and the new ones in the ledger, where the next call finds them; a crash after it leaves rows that the next call removes.
"""

from collections.abc import Callable, Mapping

from agentir_ray.engine.channel import DENSE, TOKENS, Channel
from agentir_ray.engine.encoders_in_use import EncodersInUse
from agentir_ray.engine.encoding import Task
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.sidecars import SUFFIX
from agentir_ray.engine.store import Store
from agentir_ray.engine.vectors import add_young, key_of
from agentir_ray.errors import ConflictError, EncoderMissingError

Progress = Callable[[int, int], None]


def reembed(store: Store, name: str, encoders: EncodersInUse, progress: Progress | None = None) -> None:
    """Give the namespace vectors of these encoders, and try again what they refused. From then on the store encodes with them.

    `progress` is told how many entries of the log were seen, and how many there are, all channels together. Raises EncoderMissingError, EncodingError, NotFoundError; what was
    encoded by then stays for the next call.
    """
    if not encoders.names():
        raise EncoderMissingError("there is no encoder to encode with; give one, or open the store with encoder= or sparse_encoder=")
    store.writer  # noqa: B018 - raises ReadOnlyError
    with store.namespace(name) as namespace:
        _retry_refused(store, namespace, encoders)
        wanted = {channel: Channel(channel, encoder) for channel, encoder in encoders.wanted().items() if _encoder_of(namespace, channel) != encoder}
    tasks = _tasks(wanted, encoders)
    more = bool(tasks)
    while more:  # the namespace is let go between two batches, so that one found damaged can be loaded anew
        with store.namespace(name) as namespace, store.encoding.working:
            more = _advance(store, namespace, tasks, progress)
    with store.namespace(name) as namespace:
        if wanted:
            _exchange(store, namespace, tasks, wanted, encoders)
        else:
            store.encoders.take_over(encoders)
        keys = [key_of(channel.name, channel.encoder) for channel in namespace.channels.values()]
        store.vectors.attempt(lambda _: store.vectors.make().keep_only(namespace.number, keys), None)
    store.encoding.request(name)
    while not store.encoding.wait(name, None):  # what was refused, and what came meanwhile
        pass


def _encoder_of(namespace: Namespace, channel: str) -> str | None:
    present = namespace.channels.get(channel)
    return None if present is None else present.encoder


def _retry_refused(store: Store, namespace: Namespace, encoders: EncodersInUse) -> None:
    for name, encoder in encoders.wanted().items():
        channel = namespace.channels.get(name)
        if channel is not None and channel.encoder == encoder:
            key = key_of(name, encoder)
            before = store.vectors.attempt(lambda _, key=key: store.vectors.make().retry(namespace.number, key), None)  # type: ignore[misc]
            if before is not None:
                channel.encoded_seq = min(channel.encoded_seq, before)
                channel.failed = 0
                channel.failures.clear()


def _tasks(wanted: Mapping[str, Channel], encoders: EncodersInUse) -> list[Task]:
    tasks = [Task(channel, encoders.of(name)) for name, channel in wanted.items()]
    return [task._replace(late=wanted.get(TOKENS)) if task.channel.name == DENSE else task for task in tasks]


def _advance(store: Store, namespace: Namespace, tasks: list[Task], progress: Progress | None) -> bool:
    more = [store.encoding.advance(namespace, task, patient=False, young=False) for task in tasks]
    if progress is not None:
        progress(sum(min(task.channel.encoded_seq, namespace.index.seq) for task in tasks), len(tasks) * namespace.index.seq)
    return any(more)


def _exchange(store: Store, namespace: Namespace, tasks: list[Task], wanted: Mapping[str, Channel], encoders: EncodersInUse) -> None:
    with store.encoding.working, namespace.maintenance:  # in this order, as who encodes; nothing is sealed or merged now: what is in segments was encoded when the loop ends
        while _advance(store, namespace, tasks, None):
            pass
        index = namespace.index
        with index.lock:
            seqs = [int(seq) for buffer in index.buffers for seq in buffer.column("seq")]
        for channel in wanted.values():
            if channel.name in SUFFIX:
                for seq, data in store.vectors.values(namespace.number)(channel.name, channel.encoder, seqs).items():
                    if data:
                        add_young(channel, seq, data)
        store.encoders.expect(encoders)
        if not store.compactor.exchange_channels(namespace, wanted):
            raise ConflictError(f"namespace {namespace.name!r} is being loaded anew; call again: what was encoded is kept")
        store.encoders.take_over(encoders)
