"""The tables of a store's database, and how a connection to them is set up.

One integer, `key`, is both the primary key of an entry and its place: namespace number and sequence number in one 63-bit word. So a namespace's log is one contiguous run of
the table's own B-tree, read in order without a second index, and a body of up to a page stays in its row.

Ids, names and operation ids are stored as UTF-8 bytes, which SQLite compares with memcmp: no collation, no affinity and no pattern ever looks into them.
"""

import os
from typing import Any, Literal, NamedTuple

import apsw

from agentir_ray.errors import FormatError

APPLICATION_ID = 0x41474952  # "AGIR", in SQLite's header: tells our databases from anybody's
FORMAT_VERSION = 1

SEQ_BITS = 36  # 6.9e10 entries in a namespace, 1.3e8 namespaces in a store's life
MAX_SEQ = (1 << SEQ_BITS) - 1
MAX_NAMESPACE = (1 << (63 - SEQ_BITS)) - 1

Durability = Literal["power", "process"]


class Tables(NamedTuple):
    """What a kind of database consists of, and how it is told from others and from later ones. `page_bytes` suits its rows."""

    application_id: int
    version: int
    schema: str
    page_bytes: int = 4_096


SCHEMA = """
CREATE TABLE namespaces (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: a dropped namespace's files cannot be taken for its successor's
    name BLOB NOT NULL UNIQUE,
    owner BLOB NOT NULL,
    epoch INTEGER NOT NULL,
    next_seq INTEGER NOT NULL,
    generation INTEGER NOT NULL
);
CREATE TABLE manifests (
    namespace INTEGER PRIMARY KEY,
    manifest BLOB NOT NULL   -- apart from the row that every append rewrites: it may be large
);
CREATE TABLE priors (
    namespace INTEGER PRIMARY KEY,
    statistics BLOB NOT NULL -- of the ages of answers; apart from the manifest, whose generation tells readers to load anew
);
CREATE TABLE entries (
    key INTEGER PRIMARY KEY, -- namespace number << 36 | seq
    namespace INTEGER NOT NULL,
    id BLOB,                 -- NULL for FORGET
    version INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    created_at_us INTEGER NOT NULL,
    timestamp_us INTEGER NOT NULL,
    digest BLOB,             -- NULL when erased
    body BLOB,               -- NULL when erased
    crc INTEGER NOT NULL,
    UNIQUE (namespace, id, version)
);
CREATE TABLE operations (
    namespace INTEGER NOT NULL,
    operation BLOB NOT NULL,
    created_at_us INTEGER NOT NULL,
    result BLOB NOT NULL,
    PRIMARY KEY (namespace, operation)
) WITHOUT ROWID;
CREATE TABLE unpurged (
    namespace INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL     -- of its newest FORGET: until it was purged, whoever opens the store owes it
);
CREATE INDEX operations_by_age ON operations (created_at_us);
"""

LOG = Tables(APPLICATION_ID, FORMAT_VERSION, SCHEMA)
CACHE_KIB = 16 * 1024  # the id index of ~200,000 records; beyond it the kernel's page cache serves


def key_of(number: int, seq: int) -> int:
    return number << SEQ_BITS | seq


def seq_of(key: int) -> int:
    return key & MAX_SEQ


def fetch(connection: apsw.Connection, query: str, bindings: tuple[int | str | bytes | None, ...] = ()) -> list[Any]:
    """All rows of a statement, which is thereby finished. Their types are the columns' own."""
    return connection.execute(query, bindings).fetchall()


def check_format(connection: apsw.Connection, path: str, tables: Tables) -> bool:
    """False for a database that nobody has filled yet; raises FormatError for one that this version must not touch."""
    application, version = connection.pragma("application_id"), connection.pragma("user_version")
    assert isinstance(version, int)
    if application == tables.application_id:
        if version > tables.version:
            raise FormatError(f"{path} has format {version}; this version of agentir reads up to {tables.version}: use the version that wrote it")
        return True
    if application == 0 and version == 0 and not fetch(connection, "SELECT 1 FROM sqlite_schema LIMIT 1"):
        return False
    raise FormatError(f"{path} is a SQLite database of another program; give another folder")


def open_writer(path: str, durability: Durability, vfs: str | None, tables: Tables = LOG) -> apsw.Connection:
    """The one connection that writes, its tables made if the file is new."""
    connection = apsw.Connection(path, vfs=vfs)
    try:
        connection.set_busy_timeout(2_000)  # only ever spent when a foreign process writes; recovery by a follower takes less
        exists = check_format(connection, path, tables)
        if not exists:
            connection.pragma("page_size", tables.page_bytes)
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", "FULL" if durability == "power" else "NORMAL")
        connection.pragma("fullfsync", True)  # macOS: without it fsync stops at the drive's cache
        connection.pragma("checkpoint_fullfsync", True)
        connection.pragma("secure_delete", True)
        connection.pragma("cache_size", -CACHE_KIB)
        if not exists:
            with connection:  # one transaction: a power cut leaves an empty database or a complete one
                connection.execute(tables.schema)
                connection.pragma("application_id", tables.application_id)
                connection.pragma("user_version", tables.version)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: str, vfs: str | None, immutable: bool) -> apsw.Connection:
    """A read-only connection. `immutable` promises SQLite that nobody can change the file, which it then reads without locks or shared memory."""
    name = f"file:{quote_uri(os.path.abspath(path))}?mode=ro{'&immutable=1' if immutable else ''}"
    connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs=vfs)
    connection.set_busy_timeout(2_000)
    return connection


def quote_uri(path: str) -> str:
    """A path as SQLite's URI parser wants it: only these three characters mean anything to it there."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
