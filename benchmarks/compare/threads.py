"""Two threads in one process against two processes that know nothing of each other: the same queries, in turn, each half to one of the two.

python -m benchmarks.compare.threads COLLECTION_FOLDER SEGMENT_FOLDER K     # reads "FIRST END THREADS" from stdin, and answers when done
"""

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.compare.building import built
from benchmarks.compare.corpora import Collection

ROUNDS = 20  # of a tenth of a second; the best of few is a matter of luck beside anything else that runs


def measure(collection: Collection, k: int = 10) -> dict[str, float]:
    """Queries a second of both, by the best round, and threads / processes."""
    from benchmarks.compare.ours import Ours

    folder, _ = built(Ours(), collection)
    first, second, threaded = (_Worker(collection, folder, k) for _ in range(3))
    count = len(collection.queries)
    processes, threads = [], []
    for number in range(ROUNDS + 1):  # the first one warms up
        processes.append(_wall_s([(first, f"0 {count // 2} 1"), (second, f"{count // 2} {count} 1")]))
        threads.append(_wall_s([(threaded, f"0 {count} 2")]))
        if number == 0:
            processes.clear()
            threads.clear()
    for worker in (first, second, threaded):
        worker.close()
    return {"2 threads q/s": count / min(threads), "2 processes q/s": count / min(processes), "threads / processes": min(processes) / min(threads)}


class _Worker:
    def __init__(self, collection: Collection, folder: Path, k: int) -> None:
        command = [sys.executable, "-m", "benchmarks.compare.threads", str(collection.folder), str(folder), str(k)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait()

    def start(self, what: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("a process that searches ended")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _wall_s(work: list[tuple[_Worker, str]]) -> float:
    began = time.perf_counter()
    for worker, what in work:
        worker.start(what)
    for worker, _ in work:
        worker.wait()
    return time.perf_counter() - began


def _serve(collection: Collection, folder: Path, k: int) -> None:
    from benchmarks.compare.ours import Ours

    ours = Ours()
    ours.open(collection, folder)
    queries = ours.queries(collection.queries)
    print("ready", flush=True)
    for line in sys.stdin:
        first, end, threads = map(int, line.split())
        ours.search_many(queries[first:end], k, threads)
        print("done", flush=True)


if __name__ == "__main__":
    _serve(Collection(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
