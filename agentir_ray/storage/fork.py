"""Detection of use after a fork.

A forked child shares the parent's file descriptors and locks but none of its threads: whatever holds a lock or a database connection there must not be used. Each such object
keeps a `ForkGuard` and asks it first. Comparing pids (50 ns) also sees forks made by C code, which no Python hook does.
"""

import os

from agentir_ray.errors import ForkedError


class ForkGuard:
    __slots__ = ("_pid",)

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def forked(self) -> bool:
        return os.getpid() != self._pid

    def check(self) -> None:
        """Raises ForkedError in a child of the process that made this guard."""
        if os.getpid() != self._pid:
            raise ForkedError(f"process {os.getpid()} is a fork of process {self._pid}, which opened this store; open the store again in the child")
