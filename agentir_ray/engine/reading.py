"""One record by its id, from the index: no statement reaches the database, but for what was spilled, which need not be loaded for it."""

from agentir_ray.engine.namespace import Namespace
from agentir_ray.errors import NotFoundError
from agentir_ray.storage.codec import decode_body
from agentir_ray.types import Record


def get_record(namespace: Namespace, id: str) -> Record:
    """The newest version of the record. Raises NotFoundError."""
    index = namespace.index
    with index.lock:
        place = index.current(id)
        if place is None:
            raise NotFoundError(f"there is no record {id!r} in namespace {namespace.name!r}")
    return decode_body(place.part.stored(place.doc), int(place.part.column("seq")[place.doc]))  # without the lock: a cold segment asks the log
