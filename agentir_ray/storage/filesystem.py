"""Which file system a folder lies on, and whether a store may live there.

A store trusts locks, fsync and shared memory maps, which network file systems honour in name only: there a store is refused rather than corrupted later. The decision is a pure
function of a path and the text of the mount table, so that tests bring their own table.
"""

import os
import re
import subprocess
import sys

from agentir_ray.errors import ReadOnlyError, UnsupportedFileSystemError

# Prefixes of type names. Local FUSE file systems (fuseblk, fuse.ext2, fuse.mergerfs) are not among them.
NETWORK_TYPES = (
    *("nfs", "cifs", "smb", "afs", "afpfs", "9p", "ncpfs", "coda", "webdav", "davfs"),
    *("ceph", "glusterfs", "lustre", "gpfs", "pvfs2", "orangefs", "beegfs", "ocfs2", "gfs2"),
)
NETWORK_FUSE = (
    *("sshfs", "s3fs", "mount-s3", "goofys", "geesefs", "gcsfuse", "blobfuse", "rclone", "juicefs", "moosefs", "mfs"),
    *("glusterfs", "ceph", "lustre", "davfs", "curlftpfs", "nfs", "smb"),
)

_LINUX_LINE = re.compile(r"^\S+ \S+ \S+ \S+ (?P<point>\S+) .*? - (?P<type>\S+) ")
_MACOS_LINE = re.compile(r"^.* on (?P<point>/.*) \((?P<type>[^,)]+)[,)]")
_OCTAL = re.compile(r"\\([0-7]{3})")


def parse_mount_table(table: str) -> list[tuple[str, str]]:
    """(mount point, type) in order, from /proc/self/mountinfo or from the output of macOS's `mount`."""
    mounts = []
    for line in table.splitlines():
        if match := _LINUX_LINE.match(line):
            mounts.append((_OCTAL.sub(lambda octal: chr(int(octal[1], 8)), match["point"]), match["type"]))
        elif match := _MACOS_LINE.match(line):
            mounts.append((match["point"], match["type"]))
    return mounts


def file_system_of(path: str, table: str) -> str:
    """The type of the file system that holds `path` (absolute, links resolved); "unknown" if the table has no root. A later mount over the same point hides an earlier one."""
    best, kind = -1, "unknown"
    for point, type in parse_mount_table(table):
        inside = point == "/" or path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), type
    return kind


def is_network(type: str) -> bool:
    type = type.lower()
    family, _, name = type.partition(".")
    if family in ("fuse", "macfuse", "osxfuse") and name:
        return name.startswith(NETWORK_FUSE)
    return type.startswith(NETWORK_TYPES)


def read_mount_table() -> str:
    """This machine's mount table."""
    if sys.platform == "darwin":
        return subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=True).stdout
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def check_local(folder: str | os.PathLike[str], table: str | None = None) -> None:
    """Raises UnsupportedFileSystemError when `folder` lies on a network file system. `table` stands in for this machine's mount table."""
    path = os.path.realpath(folder)
    type = file_system_of(path, read_mount_table() if table is None else table)
    if is_network(type):
        raise UnsupportedFileSystemError(f"{os.fspath(folder)} lies on a network file system ({type}), whose locks cannot be trusted; use a folder on a local disk")


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raises ReadOnlyError when this process cannot write in `folder`, be it by permission or because the disk is mounted read-only."""
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "its disk is mounted read-only" if os.statvfs(folder).f_flag & os.ST_RDONLY else "this user has no permission"
        raise ReadOnlyError(f"{os.fspath(folder)} cannot be written ({why}); open the store with read_only=True, or use another folder")
