"""What an importer yields: an item to store, or a part that it had to skip.

An importer is a generator over a `Source`. It yields in the order of the file, so that a consumer may store as it reads; it knows no store and no command line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Item:
    """One record to store.

    `record` holds keyword arguments of `Memory.add` (`id`, `text`, `timestamp`, `session`, `role`, `importance`, `metadata`, `expires_at`, `supersedes`) and, from our own
    export, `created_at`. `namespace` is relative to where the caller imports to ("" = right there). `where` names the place in the file, for messages.
    """

    record: Mapping[str, Any]
    namespace: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part of the file that holds no record which could be read, and why."""

    where: str
    what: str
