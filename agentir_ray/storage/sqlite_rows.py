"""One row of `entries`: its columns in order, its checksum, and the way from row to `Entry`.

The checksum covers every field and its length, so that neither a flipped bit, a swapped row nor a half-wiped one passes for sound.
"""

import struct
from zlib import crc32

from agentir_ray.storage.protocol import Entry, EntryKind
from agentir_ray.storage.sqlite_schema import seq_of

COLUMNS = "key, id, version, kind, epoch, created_at_us, timestamp_us, digest, body, crc"
Row = tuple[int, bytes | None, int, int, int, int, int, bytes | None, bytes | None, int]

# key, version, kind, epoch, created_at_us, timestamp_us, lengths of id, digest and body (-1 for NULL)
_FIXED = struct.Struct("<qqqqqqqqq").pack
_KINDS = {int(kind): kind for kind in EntryKind}


def row_crc(key: int, id: bytes | None, version: int, kind: int, epoch: int, created_at_us: int, timestamp_us: int, digest: bytes | None, body: bytes | None) -> int:
    lengths = (-1 if id is None else len(id), -1 if digest is None else len(digest), -1 if body is None else len(body))
    crc = crc32(_FIXED(key, version, kind, epoch, created_at_us, timestamp_us, *lengths))
    return crc32(body or b"", crc32(digest or b"", crc32(id or b"", crc)))


def is_sound(row: Row) -> bool:
    """Whether a row is what was written. Damage may put any value of any type into any column."""
    try:
        return row_crc(*row[:9]) == row[9] and row[3] in _KINDS
    except (struct.error, TypeError):
        return False


def to_entry(row: Row) -> Entry:
    """The entry of a sound row."""
    key, id, version, kind, epoch, created_at_us, timestamp_us, digest, body, _ = row
    return Entry(seq_of(key), _KINDS[kind], None if id is None else id.decode(), version, epoch, created_at_us, timestamp_us, digest, body)
