"""Which file systems may hold a store."""

import os
from pathlib import Path

import pytest

from agentir_ray.errors import ReadOnlyError, UnsupportedFileSystemError
from agentir_ray.storage.filesystem import check_local, check_writable, file_system_of, is_network, read_mount_table

LINUX = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 0:40 / /mnt/nfs rw,relatime shared:9 master:1 - nfs4 server:/export rw,vers=4.2
31 30 254:1 / /mnt/nfs/local rw,relatime - xfs /dev/vdb rw
32 22 0:41 / /mnt/my\\040share rw - cifs //server/share rw
33 22 0:42 / /mnt/ssh rw - fuse.sshfs user@host: rw
34 22 0:43 / /mnt/ntfs rw - fuseblk /dev/sdc1 rw
35 22 0:44 / /mnt/twice rw - nfs server:/old rw
36 22 254:2 / /mnt/twice rw - ext4 /dev/vdc rw
37 22 0:45 /sub /overlay rw,relatime - overlay overlay rw,lowerdir=/a - b
"""
MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//user@nas._smb._tcp.local/home on /Volumes/home (1) (smbfs, nodev, nosuid, mounted by me)
/dev/disk4s1 on /Volumes/My Disk (hfs, local)
"""


@pytest.mark.parametrize(
    ("path", "type"),
    [
        ("/", "ext4"),
        ("/home/me/store", "ext4"),
        ("/mnt/nfs", "nfs4"),
        ("/mnt/nfs/store", "nfs4"),
        ("/mnt/nfs-is-not-it", "ext4"),
        ("/mnt/nfs/local/store", "xfs"),
        ("/mnt/my share/store", "cifs"),
        ("/mnt/ssh", "fuse.sshfs"),
        ("/mnt/ntfs/x", "fuseblk"),
        ("/mnt/twice/x", "ext4"),
        ("/overlay/x", "overlay"),
    ],
)
def test_the_longest_mount_point_decides_and_the_last_of_equals(path: str, type: str) -> None:
    assert file_system_of(path, LINUX) == type


@pytest.mark.parametrize(("path", "type"), [("/Users/me", "apfs"), ("/Volumes/home (1)/store", "smbfs"), ("/Volumes/My Disk/x", "hfs"), ("/Volumes/other", "apfs")])
def test_the_table_of_macos(path: str, type: str) -> None:
    assert file_system_of(path, MACOS) == type


@pytest.mark.parametrize(
    "type", ["nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "lustre", "afs", "9p", "webdav", "fuse.sshfs", "fuse.s3fs", "fuse.glusterfs", "fuse.rclone"]
)
def test_network_file_systems_are_refused(tmp_path: Path, type: str) -> None:
    assert is_network(type)
    with pytest.raises(UnsupportedFileSystemError, match=f"{tmp_path}.*{type}.*local disk"):
        check_local(tmp_path, f"1 0 0:1 / {tmp_path.resolve()} rw - {type} somewhere rw\n")


@pytest.mark.parametrize("type", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "hfs", "fuseblk", "fuse.mergerfs", "f2fs", "unknown"])
def test_local_file_systems_are_served(tmp_path: Path, type: str) -> None:
    assert not is_network(type)
    check_local(tmp_path, f"1 0 0:1 / {tmp_path.resolve()} rw - {type} /dev/x rw\n")


def test_a_link_is_followed_to_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "far")
    with pytest.raises(UnsupportedFileSystemError):
        check_local(tmp_path / "near", f"1 0 0:1 / {(tmp_path / 'far').resolve()} rw - nfs somewhere rw\n")


def test_this_machine_has_a_table() -> None:
    assert file_system_of("/", read_mount_table()) != "unknown"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_writable(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ReadOnlyError, match=r"no permission.*read_only=True"):
        check_writable(tmp_path)
