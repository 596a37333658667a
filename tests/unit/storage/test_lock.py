"""One writer a store, and what a forked child may do."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentir_ray.errors import ForkedError, NotFoundError, ReadOnlyError, StorageFullError, StoreLockedError
from agentir_ray.storage.lock import LOCK_NAME, StoreLock
from agentir_ray.storage.sqlite_log import SqliteLog

HOLDER = """
import sys
from agentir_ray.storage.lock import StoreLock
lock = StoreLock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child; 0 if it returned."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_f06_f11_a_second_writer_is_refused_at_once_naming_the_owner(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "locked\n"
    with pytest.raises(StoreLockedError, match=f"process {holder.pid} on host {socket.gethostname()}.*read_only=True"):
        StoreLock(tmp_path)
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    StoreLock(tmp_path).release()  # the kernel released it: nothing is left to clean up by hand


def test_a_second_opening_in_this_process_is_refused_too(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path)
    with pytest.raises(StoreLockedError, match=f"process {os.getpid()} "):
        StoreLock(tmp_path)
    lock.release()
    lock.release()
    StoreLock(tmp_path).release()


def test_the_lock_file_names_pid_and_host_and_lies_about_nobody_afterwards(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path)
    assert json.loads((tmp_path / LOCK_NAME).read_text()) == {"pid": os.getpid(), "host": socket.gethostname()}
    lock.release()
    assert (tmp_path / LOCK_NAME).read_text() == ""


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": "x", "host": 1}', '{"pid": 4194999, "host": "gone"}'])
def test_a_leftover_lock_file_locks_nobody_out(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK_NAME).write_text(content)
    lock = StoreLock(tmp_path)
    (tmp_path / LOCK_NAME).write_text(content)
    with pytest.raises(StoreLockedError, match="another process" if "gone" not in content else "process 4194999 on host gone"):
        StoreLock(tmp_path)
    lock.release()


def test_a_child_cannot_use_the_lock_and_does_not_keep_it(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path)
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    pid = os.fork()
    if pid == 0:  # lives on until the parent says so
        try:
            with pytest.raises(ForkedError):
                lock.check()
            lock.release()
            with pytest.raises(StoreLockedError):
                StoreLock(tmp_path)
            os.write(ready_write, b"x")
            os.read(go_read, 1)
        except BaseException:
            os._exit(1)
        os._exit(0)
    os.close(ready_write)
    assert os.read(ready_read, 1) == b"x"
    lock.check()
    lock.release()
    StoreLock(tmp_path).release()  # free although the child is alive
    os.write(go_write, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for descriptor in (ready_read, go_read, go_write):
        os.close(descriptor)


def test_a_child_that_releases_or_ends_leaves_the_parents_lock(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path)
    assert in_child(lock.release) == 0
    with pytest.raises(StoreLockedError):
        StoreLock(tmp_path)
    lock.release()


def test_a_started_program_does_not_inherit_the_lock(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path)
    program = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, close_fds=False)
    lock.release()
    StoreLock(tmp_path).release()
    program.communicate()


def test_a_child_gets_a_clear_error_from_the_log_and_cannot_harm_it(tmp_path: Path) -> None:
    log = SqliteLog(tmp_path / "log.db")
    log.claim("acme/alice")

    def child() -> None:
        for verb in (log.namespaces, log.purge, log.checkpoint, lambda: log.claim("x"), lambda: log.commit([])):
            with pytest.raises(ForkedError, match="open the store again in the child"):
                verb()
        log.close()

    assert in_child(child) == 0
    assert log.claim("acme/bob").number == 2 and log.verify() == []
    log.close()


def test_a_folder_that_refuses_the_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(code: int) -> Callable[..., int]:
        def refuse(*arguments: object) -> int:
            raise OSError(code, os.strerror(code))

        return refuse

    for code, error in ((30, ReadOnlyError), (13, ReadOnlyError), (28, StorageFullError), (2, NotFoundError)):
        with monkeypatch.context() as patched:
            patched.setattr("agentir_ray.storage.lock.os.open", refusing(code))
            with pytest.raises(error):
                StoreLock(tmp_path)
