"""The write-behind: records get their vectors after they were stored, in the order of the log, by one thread a store.

It pulls: per namespace and channel the ledger keeps how far the encoder has seen the log, and the next few entries are read from there. What the ledger has of a text already is
not encoded again; what a sidecar has of a record and the ledger lacks (it was lost) goes back into the ledger. So memory is bounded by a batch, a crash leaves nothing but work,
and no queue needs saving. Only when the ledger has committed are the vectors searchable.

An encoder that fails is tried again, ever more rarely. When it goes on to fail on a batch though it can encode something else, the texts of the batch are tried one by one, and
those that it refuses are kept as refused, so that the others need not wait for them. `background=False`: who waits does the work.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from agentir_ray.clock import Clock
from agentir_ray.encoders.protocol import identity
from agentir_ray.encoders.records import encode_late_records, encode_records, encode_sparse_records
from agentir_ray.engine.channel import CHANNELS, DENSE, SPARSE, TOKENS, Channel
from agentir_ray.engine.compaction import Compactor
from agentir_ray.engine.encoders_in_use import EncodersInUse
from agentir_ray.engine.namespace import Namespace
from agentir_ray.engine.sidecars import covered, documents_of
from agentir_ray.engine.vector_codec import PACK, pack_dense
from agentir_ray.engine.vectors import Vectors, add_young, key_of
from agentir_ray.errors import AgentIRError, DamagedError, EncoderError, EncodingError, NotFoundError, StoreClosedError
from agentir_ray.storage.codec import decode_body
from agentir_ray.storage.sqlite_log import SqliteLog
from agentir_ray.storage.vector_ledger import Encoded

BATCH = 64  # entries of the log; few, so that what is paid for is soon durable, and a search soon finds it
BATCH_CHARACTERS = 256 * 1_024  # of texts
FOLD_AT = 4_096  # young records of a segment that are put into its sidecar though more are to come
TRIES = 3  # of a batch, before its texts are tried one by one
RETRY_S, MAX_RETRY_S = 1.0, 300.0
IDLE_S = 600.0
PROBE = "a text that any encoder can read"
logger = logging.getLogger("agentir_ray")

Values = dict[str, dict[bytes, bytes]]  # by channel, by digest


def digest_of(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


class Trouble(NamedTuple):
    """Why an encoder does not work now, how often in a row it failed, and when it is tried again, by the clock's `monotonic_ns`."""

    reason: str
    failures: int
    at_ns: int


class Task(NamedTuple):
    """What is to be done for one channel: by its encoder, from where, and where else the same pass gives something."""

    channel: Channel
    encoder: Any
    late: Channel | None = None  # the tokens' channel, when one pass gives both


class WriteBehind:
    def __init__(
        self,
        log: SqliteLog,
        vectors: Vectors,
        encoders: EncodersInUse,
        compactor: Compactor,
        acquire: Callable[[str], AbstractContextManager[Namespace]],
        clock: Clock,
        background: bool,
        max_unencoded: int,
    ) -> None:
        self._log = log
        self._vectors = vectors
        self._encoders = encoders
        self._compactor = compactor
        self._acquire = acquire
        self._clock = clock
        self._background = background
        self._max_unencoded = max_unencoded
        self._condition = threading.Condition()
        self._due: OrderedDict[str, None] = OrderedDict()
        self._troubles: dict[str, Trouble] = {}  # by channel
        self._rates: dict[str, float] = {}  # texts a second of late, by channel
        self._refusals: dict[bytes, str] = {}  # of the batch at hand, by digest
        self.working = threading.Lock()  # held by who encodes: the thread, or callers one after the other; taken before any namespace's maintenance lock
        self._scanned = False
        self._stopping = False
        self._thread: threading.Thread | None = None

    @property
    def wanted(self) -> bool:
        """Whether there is an encoder at all."""
        return bool(self._encoders.names())

    # Asking for it.

    def request(self, name: str) -> None:
        """A namespace has records that may have no vectors yet."""
        if not self._background or not self.wanted:
            return
        with self._condition:
            if self._stopping:
                return
            self._due[name] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="agentir-encode", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def wait(self, name: str, timeout_s: float | None) -> bool:
        """Whether all that was stored before this call has its vectors, or was refused; False when that took longer.

        Raises EncoderMismatchError where the namespace's vectors are another encoder's, and EncodingError (EncoderMissingError) where the encoder goes on to fail.
        """
        until_ns = None if timeout_s is None else self._clock.monotonic_ns() + int(timeout_s * 1e9)
        target = None
        while True:
            try:
                with self._acquire(name) as namespace:
                    target = namespace.index.seq if target is None else target
                    self._check_encoders(namespace)
                    behind = self._behind(namespace, target)
                    if not behind:
                        return True
                    if not self._background:
                        with self.working:
                            self.step(namespace, patient=False)
            except NotFoundError:
                return True
            left_s = None if until_ns is None else (until_ns - self._clock.monotonic_ns()) / 1e9
            if left_s is not None and left_s <= 0:
                return False
            if self._background:
                self.request(name)
                with self._condition:
                    for channel in behind:
                        trouble = self._troubles.get(channel)
                        if trouble is not None and trouble.failures > TRIES:
                            raise EncodingError(f"channel {channel!r}: {trouble.reason}; it is tried again in the background, and mode='bm25' goes on serving")
                    self._condition.wait(0.25 if left_s is None else min(0.25, left_s))

    def make_room(self, namespace: Namespace) -> None:
        """Have a writer wait while too much of its namespace is not encoded, and the encoder works. The caller has acquired it."""
        if not self._background or not self.wanted or self.lag(namespace) <= self._max_unencoded:
            return
        with self._condition:
            while self.lag(namespace) > self._max_unencoded and not (self._stopping or namespace.damaged or self._troubles):
                self._condition.wait(0.25)

    def lag(self, namespace: Namespace) -> int:
        """Entries of the log that some channel's encoder has not seen."""
        return max((namespace.index.seq - task.channel.encoded_seq for task in self._tasks(namespace)), default=0)

    def trouble(self, channel: str) -> str | None:
        found = self._troubles.get(channel)
        return None if found is None else found.reason

    def rate(self, channel: str) -> float:
        """Texts a second, of late."""
        return self._rates.get(channel, 0.0)

    def _check_encoders(self, namespace: Namespace) -> None:
        for name in self._encoders.names():
            channel = namespace.channels.get(name)
            if channel is not None:
                self._encoders.for_identity(name, channel.encoder)

    def _behind(self, namespace: Namespace, target: int) -> list[str]:
        """The channels that have not come so far; those that the namespace has not begun, too."""
        if not target:
            return []
        missing = [name for name in self._encoders.names() if name not in namespace.channels]
        return missing + [task.channel.name for task in self._tasks(namespace) if task.channel.encoded_seq < target]

    # Doing it.

    def stop(self) -> None:
        """Finish the batch at hand and end the thread."""
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            if not self._scanned:
                self._scan()
            with self._condition:
                while not self._stopping and (idle_s := self._idle_s()) != 0:
                    self._condition.wait(idle_s)
                if self._stopping:
                    return
                name, _ = self._due.popitem(last=False)
            again = False
            try:
                with self._acquire(name) as namespace, self.working:
                    again = self.step(namespace, patient=True)
            except NotFoundError:
                pass
            except StoreClosedError:
                return
            except AgentIRError as error:
                logger.warning("encoding namespace %s: %s", name, error)
                self._fail("", str(error))
                again = True
            except Exception as error:
                logger.exception("encoding namespace %s failed", name)
                self._fail("", repr(error))
                again = True
            else:
                self._troubles.pop("", None)
            with self._condition:
                if again:
                    self._due.setdefault(name)
                self._condition.notify_all()

    def _idle_s(self) -> float:
        """For how long there is nothing to do; 0: there is."""
        if not self._due:
            return IDLE_S
        if not self._troubles:
            return 0
        now_ns = self._clock.monotonic_ns()
        waiting = [(trouble.at_ns - now_ns) / 1e9 for trouble in self._troubles.values()]
        if "" not in self._troubles and len(waiting) < len(self._encoders.names()):
            return 0
        return max(0.0, min(waiting))

    def _scan(self) -> None:
        """Ask for what was left when the store was closed: two statements, whatever the number of namespaces."""
        self._scanned = True
        none: dict[tuple[int, str], int] = {}
        cursors = self._vectors.attempt(lambda ledger: ledger.cursors(), none)
        keys = [key_of(name, encoder) for name, encoder in self._encoders.wanted().items()]
        with self._condition:
            for name, number, last_seq in self._log.lengths():
                if any(cursors.get((number, key), 0) < last_seq for key in keys):
                    self._due.setdefault(name)

    def _tasks(self, namespace: Namespace) -> list[Task]:
        """What there is to do for a namespace, as far as its encoders are those in use. Tokens come after dense vectors, whose pass gives them, too."""
        found = {}
        for name in CHANNELS:
            channel, encoder = namespace.channels.get(name), self._encoders.of(name)
            if channel is not None and encoder is not None and identity(encoder) == channel.encoder:
                found[name] = Task(channel, encoder)
        if DENSE in found and TOKENS in found:
            found[DENSE] = found[DENSE]._replace(late=found[TOKENS].channel)
        return list(found.values())

    def step(self, namespace: Namespace, patient: bool) -> bool:
        """Encode the next batch of each channel; whether there is more. Impatient: what fails is not put off, and an encoder that does not work at all is an error."""
        if namespace.damaged or not namespace.index.seq:
            return False
        self._begin(namespace)
        more = False
        for task in self._tasks(namespace):
            trouble = self._troubles.get(task.channel.name)
            if patient and trouble is not None and trouble.at_ns > self._clock.monotonic_ns():
                more = True
                continue
            more |= self.advance(namespace, task, patient)
        return more

    def _begin(self, namespace: Namespace) -> None:
        """Give a namespace the channels that it lacks."""
        new = [Channel(name, identity(self._encoders.of(name))) for name in self._encoders.names() if name not in namespace.channels]
        if new:
            self._vectors.make()
            self._compactor.begin_channels(namespace, new)

    def advance(self, namespace: Namespace, task: Task, patient: bool, young: bool = True) -> bool:
        """Encode the next entries for one channel; whether there is more. `young`: searchable at once, and not only in the ledger."""
        channel, number = task.channel, namespace.number
        ledger = self._vectors.make()
        key = key_of(channel.name, channel.encoder)
        start = self._vectors.attempt(lambda reader: reader.cursor(number, key), None) or 0
        until = namespace.index.seq
        if start >= until:
            channel.encoded_seq = start
            return False
        texts: dict[int, str] = {}
        characters, end = 0, start
        for entry in self._log.read(number, start, min(BATCH, until - start)):
            end = entry.seq
            if entry.id is not None and entry.body is not None:
                texts[entry.seq] = decode_body(entry.body, entry.seq).text
                characters += len(texts[entry.seq])
                if characters >= BATCH_CHARACTERS:
                    break
        if end == start:
            return False
        digests = {seq: digest_of(text) for seq, text in texts.items()}
        none: dict[bytes, bytes] = {}
        known = self._vectors.attempt(lambda reader: reader.known(number, key, list(set(digests.values()))), none)
        made: Values = {channel.name: self._from_sidecars(namespace, channel, {seq: digest for seq, digest in digests.items() if digest not in known})}
        wanted = {digest: texts[seq] for seq, digest in digests.items() if digest not in known and digest not in made[channel.name]}
        self._refusals.clear()
        if wanted:
            encoded = self._encode(task, wanted, patient)
            if encoded is None:
                return True
            for name, values in encoded.items():
                made.setdefault(name, {}).update(values)
        ledgered = {key: Encoded(made.pop(channel.name), (start, end))}
        if task.late is not None:
            ledgered[key_of(TOKENS, task.late.encoder)] = Encoded(made.get(TOKENS, {}))
        gone = set(self._vectors.attempt(lambda _: ledger.put(number, digests.items(), ledgered, lambda seqs: self._log.erased(number, seqs)), list(digests)))
        new = ledgered[key].vectors
        present = known | dict(new)
        for seq, digest in digests.items():
            if seq not in gone:
                data = present[digest]
                if not data:
                    channel.fail(seq, self._refusals.get(digest, "the encoder refused the text before; `reembed` tries again"))
                elif young:
                    add_young(channel, seq, data)
        channel.encoded_seq = self._vectors.attempt(lambda reader: reader.cursor(number, key), None) or 0
        if young:
            self._fold(namespace, channel)
        return channel.encoded_seq < namespace.index.seq

    def _fold(self, namespace: Namespace, channel: Channel) -> None:
        young = 0 if channel.young is None else len(channel.young)
        if young >= FOLD_AT or (young and channel.encoded_seq >= namespace.applied_seq):
            self._compactor.fold(namespace, FOLD_AT)

    @staticmethod
    def _from_sidecars(namespace: Namespace, channel: Channel, missing: dict[int, bytes]) -> dict[bytes, bytes]:
        """What sidecars have of records whose texts the ledger lacks, which was lost."""
        found: dict[bytes, bytes] = {}
        if channel.name != DENSE or not missing:
            return found
        seqs = np.array(list(missing), np.int64)
        for segment in namespace.index.segments:
            sidecar = segment.sidecars.get(channel.name)
            if sidecar is None or sidecar.encoder != channel.encoder:
                continue
            docs = documents_of(segment, seqs)
            try:
                here = np.flatnonzero((docs >= 0) & covered(sidecar)[docs])
                start, vectors = sidecar.vectors_of(docs[here])
            except DamagedError as error:
                logger.warning("%s", error)
                continue
            found |= {missing[int(seqs[at])]: pack_dense(vectors[start[i] : start[i + 1]]) for i, at in enumerate(here.tolist())}
        return found

    # The encoder.

    def _encode(self, task: Task, wanted: dict[bytes, str], patient: bool) -> Values | None:
        """Of texts by digest. None: the encoder does not work now, and is to be tried again."""
        name = task.channel.name
        started_ns = self._clock.monotonic_ns()
        try:
            made = self._call(task, list(wanted), list(wanted.values()))
        except Exception as error:
            trouble = self._fail(name, _reason(task.encoder, error))
            if patient and trouble.failures < TRIES:
                return None
            if isinstance(error, EncoderError) and not isinstance(error, EncodingError):  # something is not installed: no text is at fault
                if patient:
                    return None
                raise
            return self._one_by_one(task, wanted, patient, error)
        self._succeed(name, len(wanted), started_ns)
        return made

    def _one_by_one(self, task: Task, wanted: dict[bytes, str], patient: bool, error: Exception) -> Values | None:
        """Find the texts that the encoder refuses, when it works at all."""
        try:
            self._call(task, [b""], [PROBE])
        except Exception as again:
            if patient:
                return None
            raise EncodingError(f"{_reason(task.encoder, again)}; nothing is lost: see to the encoder and call again, mode='bm25' goes on serving") from error
        made: Values = {}
        for digest, text in wanted.items():
            try:
                one = self._call(task, [digest], [text])
            except Exception as refusal:
                reason = _reason(task.encoder, refusal)
                logger.warning("channel %s: a text of %d characters is refused: %s", task.channel.name, len(text), reason)
                self._refusals[digest] = reason
                one = {task.channel.name: {digest: b""}}
            for name, values in one.items():
                made.setdefault(name, {}).update(values)
        self._troubles.pop(task.channel.name, None)
        return made

    def _call(self, task: Task, digests: Sequence[bytes], texts: Sequence[str]) -> Values:
        encoder = task.encoder
        if task.channel.name == SPARSE:
            vectors = encode_sparse_records(encoder, texts)
            return {SPARSE: {digest: PACK[SPARSE](vector) for digest, vector in zip(digests, vectors, strict=True)}}
        if task.channel.name == TOKENS or task.late is not None:
            records, tokens = encode_late_records(encoder, texts)
            late = {digest: PACK[TOKENS](each) for digest, each in zip(digests, tokens, strict=True)}
            if task.channel.name == TOKENS:
                return {TOKENS: late}
            return {TOKENS: late, DENSE: _packed(digests, records.start, records.vectors)}
        records = encode_records(encoder, texts)
        return {DENSE: _packed(digests, records.start, records.vectors)}

    def _fail(self, channel: str, reason: str) -> Trouble:
        before = self._troubles.get(channel)
        failures = 1 if before is None else before.failures + 1
        delay_s = min(MAX_RETRY_S, RETRY_S * 2.0 ** min(failures - 1, 16))
        trouble = Trouble(reason, failures, self._clock.monotonic_ns() + int(delay_s * 1e9))
        self._troubles[channel] = trouble
        if before is None or before.reason != reason:
            logger.warning("encoding is put off: %s", reason)
        return trouble

    def _succeed(self, channel: str, texts: int, started_ns: int) -> None:
        self._troubles.pop(channel, None)
        rate = texts / max(1e-9, (self._clock.monotonic_ns() - started_ns) / 1e9)
        self._rates[channel] = rate if channel not in self._rates else 0.9 * self._rates[channel] + 0.1 * rate


def _packed(digests: Sequence[bytes], start: Any, vectors: Any) -> dict[bytes, bytes]:
    return {digest: pack_dense(vectors[start[i] : start[i + 1]]) for i, digest in enumerate(digests)}


def _reason(encoder: Any, error: Exception) -> str:
    return str(error) if isinstance(error, AgentIRError) else f"{encoder.name} failed: {error!r}"
