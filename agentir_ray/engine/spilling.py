"""What goes to a spill target and comes back: one object a cold segment, named `<store's identity>/<namespace number>/<file>-<random>-<digest>.spilled`.

The digest is of the object's bytes, and so a manifest vouches for what it names: nothing of an object is looked at before its bytes are known to be those that were spilled. The
random part makes every name new, also for the same bytes, so that no deletion on its way can meet an object that was written since.

The identity is a random name that the store gives itself when it first spills. It lies in `<store>/SPILL` and, as a marker, on the target: an object that is missing where the
marker is there is gone for good, and its segment is rebuilt from the log; a target without the marker is another one, or not mounted, and no damage. A copy of a store folder
shares the identity of the original, and must not share its target; a backup has none.

An object is named by a manifest only when it was written and read back; those that no manifest names are garbage: deleted when they are replaced, or, after a crash or a
failure, by a sweep of all that is there, which leaves alone what has no name of ours. `clean` says whether there is none.

Nothing here waits for the target longer than it was told, whatever the target does, nor under a lock that a writer may want. Loaded segments are files of which no name is left.
"""

import contextlib
import hashlib
import logging
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic

from agentir_ray.clock import Clock
from agentir_ray.engine.namespace import Namespace
from agentir_ray.errors import AgentIRError, DamagedError, SpilledError
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.spilled import restored, spilled_sections
from agentir_ray.sections import SectionFile, encode_sections
from agentir_ray.storage.files import SYSTEM_FILES, Chunk, FileOps, clean_temporary, write_file
from agentir_ray.storage.patience import Patience
from agentir_ray.storage.spill import PRIVATE_FOLDER, MissingObjectError, SpillTarget

IDENTITY = "SPILL"
LOADED = "loaded"
SUFFIX = ".spilled"
DIGEST_BYTES = 16
_GARBAGE = re.compile(r"([0-9]+/[A-Za-z0-9_-]+\.spilled|SPILL)(\.[0-9]+\.tmp)?")  # below the identity: ours, or what a put that was interrupted left
PATIENCE_S = 2.0  # of a search without a deadline
UNHURRIED_S = 30.0  # of maintenance with an object, more with one of more MB than that
CLOSING_S = 5.0
BRIEF_S = 5.0  # of maintenance with a list or a deletion
logger = logging.getLogger("agentir_ray")


class _Load:
    """A segment on its way, for everybody who wants it. When `done`: why it was not loaded, if so, and whether it never will be."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.reason = ""
        self.lost = False


class Spiller:
    def __init__(self, store: Path, target: SpillTarget | None, clock: Clock, read_only: bool, named: Callable[[], set[str]], files: FileOps = SYSTEM_FILES) -> None:
        """`named` gives the objects that the manifests name now."""
        self._store = store
        self.target = target
        self._clock = clock
        self._read_only = read_only
        self._named = named
        self.on_loaded: Callable[[], None] = lambda: None
        self._files = files
        self._lock = threading.Lock()  # guards what follows
        self._loads: dict[tuple[Namespace, str], _Load] = {}
        self._pending: set[str] = set()  # objects that are there, or on their way, and not yet named
        self._doomed: set[str] = set()
        self._suspected = self._swept = 0  # how often there may have come to be garbage that nobody knows by name, and up to which of them all was looked through
        self._folder: Path | None = None
        self._loading, self._keeping = Patience(f"the spill target {target}"), Patience(f"the spill target {target}")
        self._identity = self._read_identity()
        if not read_only:
            self._suspected = int(bool(self._identity))
            shutil.rmtree(store / LOADED, ignore_errors=True)
            clean_temporary(str(store), files)

    def _read_identity(self) -> str:
        try:
            return (self._store / IDENTITY).read_text(encoding="ascii").strip()
        except (FileNotFoundError, NotADirectoryError):
            return ""

    @property
    def configured(self) -> bool:
        return self.target is not None

    def _to(self) -> SpillTarget:
        if self.target is None:
            raise SpilledError(f"the store at {self._store} has spilled segments, but was opened without `spill`; open it with the folder or URL that they were spilled to")
        return self.target

    # There.

    def spill(self, namespace: Namespace, segment: Segment, leave: Callable[[str], bool]) -> bool:
        """Write the segment's object, read it back, and call `leave` with its name, which tells whether a manifest names it now. Raises SpilledError; then all is as before."""
        target = self._to()
        identity = self._identity or self._keeping.call(lambda: self._introduce(target), UNHURRIED_S)
        chunks = encode_sections(spilled_sections(segment))
        name = f"{identity}/{namespace.number}/{segment.path.stem}-{secrets.token_hex(4)}-{_digest(chunks)}{SUFFIX}"
        with self._lock:
            self._pending.add(name)
        named = False
        try:
            patience_s = max(UNHURRIED_S, segment.heavy_bytes / 1e6)
            self._keeping.call(lambda: _put(target, name, chunks), patience_s)
            named = leave(name)
            return named
        finally:
            with self._lock:
                if not named:  # or perhaps, after an interrupt: the sweep asks the manifests
                    self._suspected += 1
                self._pending.discard(name)

    def _introduce(self, target: SpillTarget) -> str:
        """Give the store an identity, which the target knows first."""
        identity = secrets.token_hex(8)
        target.prepare()
        target.put(f"{identity}/{IDENTITY}", [f"the spilled segments of the store at {self._store}\n".encode()])
        write_file(str(self._store / IDENTITY), [identity.encode()], self._files)
        self._identity = identity
        return identity

    # And back.

    def load(self, namespace: Namespace, segments: Sequence[Segment], deadline_ns: int | None) -> str:
        """Load cold segments; "" when all are loaded, else why not. Each is put in its place in the index as soon as it is there, also after the caller has given up.

        `deadline_ns` is of the store's clock; without one, PATIENCE_S have to do, less what the target has kept others waiting for. Raises DamagedError when an object is damaged
        or gone for good, so that whoever writes the store rebuilds its segment.
        """
        until_ns = self._clock.monotonic_ns() + int((PATIENCE_S - self._loading.waited_s) * 1e9) if deadline_ns is None else deadline_ns
        for segment in segments:
            if not segment.cold:
                continue
            left_s = (until_ns - self._clock.monotonic_ns()) / 1e9
            load = self._start(namespace, segment)
            if not load.done.wait(max(0.0, left_s)):
                return f"the spill target {self.target} is slow: {segment.path.name} is still being loaded"
            if load.lost:
                with namespace.index.lock:
                    present = [one for one in namespace.index.segments if one.path == segment.path and one.cold]
                if not present:
                    continue  # it was replaced meanwhile, and its object deleted
                if not self._read_only:
                    for one in present:
                        one.lost = True
                    raise DamagedError(load.reason)
            if load.reason:
                return load.reason
        return ""

    def _start(self, namespace: Namespace, segment: Segment) -> _Load:
        """Begin to load a segment, or join who did."""
        key = namespace, segment.path.name  # a namespace that was loaded anew meanwhile has an index of its own
        with self._lock:
            present = self._loads.get(key)
            if present is not None:
                return present
            load = self._loads[key] = _Load()

        def run() -> None:
            try:
                _put_in_place(namespace, segment, self.fetch(segment), self._clock.monotonic_ns())
            except DamagedError as error:
                load.reason, load.lost = str(error), True
            except (AgentIRError, OSError) as error:
                load.reason = str(error)
            except BaseException as error:
                load.reason = f"{segment.path.name} could not be loaded: {error!r}"
                logger.exception("loading %s failed", segment.path)
            finally:
                with self._lock:
                    del self._loads[key]
                load.done.set()
            self.on_loaded()

        try:
            threading.Thread(target=run, name="agentir-load", daemon=True).start()
        except BaseException as error:
            with self._lock:
                self._loads.pop(key, None)
            load.reason = f"{segment.path.name} could not be loaded: {error!r}"
            load.done.set()
        return load

    def fetch(self, segment: Segment) -> SectionFile:
        """What a cold segment lacks, for once. Raises DamagedError, or SpilledError where it cannot be had now."""
        return self._loading.call(lambda: self._fetch(segment), UNHURRIED_S)

    def _fetch(self, segment: Segment) -> SectionFile:
        """The heavy sections as a local file, whose name is gone when this returns."""
        with self._fetched(segment.spilled) as fetched, self._unnamed() as local:
            with open(local, "wb") as file:
                for chunk in restored(SectionFile(fetched), segment):
                    file.write(chunk)
            return SectionFile(local)

    @contextlib.contextmanager
    def _fetched(self, spilled: str) -> Iterator[Path]:
        """An object as a local file, of the bytes that its name tells."""
        name = self._checked(spilled)
        with self._unnamed() as path:
            with open(path, "wb") as file:
                if _digest(_through(file.write, self._get(name))) != _digest_in(name):
                    raise DamagedError(f"the spill target {self.target} gives back something else as {name} than it was given; its segment is rebuilt from the log")
            yield path

    @contextlib.contextmanager
    def _unnamed(self) -> Iterator[Path]:
        """A path for a file that is gone, but for who maps it, when the block ends."""
        path = self._loaded_folder() / secrets.token_hex(8)
        try:
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _checked(self, name: str) -> str:
        """Of a name in a manifest. That of another identity was given up: its target is not ours any more."""
        self._to()
        self._identity = self._identity or self._read_identity()
        if not name.startswith(f"{self._identity}/"):
            raise DamagedError(f"{name} was spilled before {self._store / IDENTITY} was removed; its segment is rebuilt from the log")
        return name

    def _get(self, name: str) -> Iterator[bytes]:
        """An object's bytes. Raises DamagedError when it is gone for good."""
        target = self._to()
        try:
            yield from target.get(name)
        except MissingObjectError as missing:
            try:
                for _ in target.get(f"{name.partition('/')[0]}/{IDENTITY}"):
                    break
            except MissingObjectError:
                way_out = f"if it is gone for good, remove {self._store / IDENTITY} and what was there is rebuilt from the log"
                raise SpilledError(f"the spill target {target} knows nothing of this store; see that it is the one that was used before, and mounted; {way_out}") from None
            raise DamagedError(f"{missing}; its segment is rebuilt from the log") from missing

    def _loaded_folder(self) -> Path:
        with self._lock:
            if self._folder is None or not self._folder.is_dir():
                self._folder = Path(mkdtemp(prefix="agentir-loaded-")) if self._read_only else self._store / LOADED
                self._folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
            return self._folder

    def check(self, spilled: str, segment: Segment) -> None:
        """Read an object and check it to the last byte. Raises DamagedError, or SpilledError where it cannot be had now."""

        def work() -> None:
            with self._fetched(spilled) as fetched:
                for _ in restored(SectionFile(fetched), segment):
                    pass

        self._loading.call(work, UNHURRIED_S)

    # Garbage.

    @property
    def clean(self) -> bool:
        """Whether the target holds nothing of this store but what manifests name."""
        return not self._doomed and self._swept == self._suspected

    def discard(self, objects: Sequence[str] | None) -> None:
        """Objects that no manifest names any more (None: there may be some); `sweep` deletes them."""
        with self._lock:
            if objects is None:
                self._suspected += bool(self._identity)
            else:
                self._doomed.update(objects)

    def sweep(self) -> None:
        """Delete all garbage that can be deleted now. Raises SpilledError when some is left."""
        target = self._to()
        with self._lock:
            doomed, suspected = sorted(self._doomed), self._suspected
        failure = self._delete(target, doomed)
        if self._swept < suspected:
            prefix = f"{self._identity}/"
            found = {name for name in self._keeping.call(lambda: target.names(self._identity), BRIEF_S) if _GARBAGE.fullmatch(name.removeprefix(prefix))}
            with self._lock:
                found -= {*self._pending, f"{prefix}{IDENTITY}"}
            left = self._delete(target, sorted(found - self._named()))
            if left is None:
                with self._lock:
                    self._swept = max(self._swept, suspected)
            failure = failure or left
        if failure is not None:
            raise failure

    def _delete(self, target: SpillTarget, names: Sequence[str]) -> AgentIRError | None:
        """Delete objects, also after one that could not be, but not for long then; why some are left."""
        failure, until_s = None, monotonic() + BRIEF_S
        for name in names:
            try:
                self._keeping.call(lambda name=name: target.delete(name), BRIEF_S)  # type: ignore[misc]
                with self._lock:
                    self._doomed.discard(name)
            except AgentIRError as error:
                failure = failure or error
                if monotonic() >= until_s:
                    break
        return failure

    def hasten(self) -> None:
        """The store is being closed: what the target does now it does soon, or at another time."""
        self._keeping.end(CLOSING_S)
        self._loading.end(0.0)

    def close(self) -> None:
        """Let go of what was loaded."""
        self.hasten()
        with self._lock, contextlib.suppress(OSError):
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None


def _digest(chunks: Iterable[Chunk]) -> str:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _digest_in(name: str) -> str:
    return name.removesuffix(SUFFIX).rpartition("-")[2]


def _through(write: Callable[[bytes], object], pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        write(piece)
        yield piece


def _put(target: SpillTarget, name: str, chunks: Sequence[Chunk]) -> None:
    target.put(name, chunks)
    if _digest(target.get(name)) != _digest_in(name):
        raise SpilledError(f"the spill target {target} gives back something else than it was given; nothing is lost, and the segment stays here")


def _put_in_place(namespace: Namespace, segment: Segment, heavy: SectionFile, now_ns: int) -> None:
    """In memory only: the manifest names the remainder as before."""
    loaded = segment.over(heavy=heavy)
    loaded.touch()
    loaded.loaded_ns = now_ns
    with namespace.index.lock:
        present = next((one for one in namespace.index.segments if one.path == segment.path), None)
        if present is not None and present.cold:
            loaded.answers = present.answers = present.answers + 1.0  # it is wanted: what others want less goes first
            namespace.index.exchange(present, loaded)
