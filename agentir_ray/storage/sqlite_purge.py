"""No file of a database holds what was deleted from it: its WAL is truncated, the gaps of its pages are zeroed (`sqlite_scrub`), and pages were overwritten by `secure_delete`."""

import threading
from collections.abc import Callable

import apsw

from agentir_ray.storage.sqlite_scrub import MAX_PAGES, opened_pages


def truncate_wal(writer: apsw.Connection) -> bool:
    """Empty the WAL; False when a reader pins it. Nobody else uses the connection meanwhile."""
    writer.set_busy_timeout(0)  # a pinning reader is an answer, not something to wait for while commits queue up
    try:
        writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        writer.set_busy_timeout(2_000)
    return True


def purge(writer: apsw.Connection, lock: threading.Lock, truncate: Callable[[], bool], path: str, vfs: str | None) -> bool:
    """False while a reader pins the WAL; call again. `truncate` empties it and tells whether that was done; `lock` is held by who writes.

    Reads the whole database once, while commits go on; then they wait for the pages to be written that need it.
    """
    with lock:
        if not truncate():
            return False
    # What was erased so far is now in the database's file alone, and can be there only where `soiled` sees it, however many commits follow.
    with opened_pages(path, vfs) as pages:
        if pages.count > MAX_PAGES:  # the whole database anew: what is left for one too large to be scrubbed
            with lock:
                writer.execute("VACUUM")
                return truncate()
        soiled = pages.soiled()
        if soiled:
            with lock:
                if not truncate():
                    return False
                pages.clean(soiled)
                writer.release_memory()  # cached copies of the pages, which the next change would write back
    return True
