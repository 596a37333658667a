"""What a namespace's index consists of, as one value in its row of the log: replaced whole, by compare-and-swap.

The log from `applied_seq` on, replayed over the named segments and the changes to their documents, gives the present state.
"""

import json
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from agentir_ray.errors import DamagedError, FormatError
from agentir_ray.lexical.overlay import Change
from agentir_ray.storage.protocol import NamespaceState
from agentir_ray.temporal.partitions import PARTITION_WIDTH_US

FORMAT = 1
_NONE: Mapping[str, str] = MappingProxyType({})


class SegmentEntry(NamedTuple):
    """A file in the namespace's folder, what happened to its documents since it was written (see lexical.overlay), what holds the rest of a segment that was spilled, and the files
    that channels have beside it, by channel."""

    file: str
    changes: list[Change]
    spilled: str = ""
    sidecars: Mapping[str, str] = _NONE


class ChannelEntry(NamedTuple):
    """Whose vectors a channel has; those of the records up to entry `settled_seq` of the log are in sidecars, as far as there are any."""

    encoder: str
    settled_seq: int


class Manifest(NamedTuple):
    analyzer: str
    applied_seq: int = 0
    segments: tuple[SegmentEntry, ...] = ()
    partition_width_us: int = PARTITION_WIDTH_US
    channels: Mapping[str, ChannelEntry] = MappingProxyType({})

    def encode(self) -> bytes:
        content = {
            "format": FORMAT, "analyzer": self.analyzer, "applied_seq": self.applied_seq, "partition_width_us": self.partition_width_us,
            "segments": [(*entry[:3], dict(entry.sidecars)) for entry in self.segments], "channels": dict(self.channels),
        }  # fmt: skip
        return zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)


def decode_manifest(data: bytes, namespace: str) -> Manifest:
    try:
        content = json.loads(zlib.decompress(data))
        if content["format"] > FORMAT:
            raise FormatError(f"namespace {namespace} has manifest format {content['format']}; this version of agentir_ray reads {FORMAT}")
        segments = tuple(
            SegmentEntry(str(file), [tuple(change) for change in changes], str(spilled), {str(channel): str(beside) for channel, beside in sidecars.items()})
            for file, changes, spilled, sidecars in content["segments"]
        )
        channels = {str(name): ChannelEntry(str(encoder), int(seq)) for name, (encoder, seq) in content["channels"].items()}
        return Manifest(content["analyzer"], content["applied_seq"], segments, content["partition_width_us"], channels)
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"the manifest of namespace {namespace} is damaged ({error}); `agentir verify` shows the rest, `agentir export --salvage` saves the records") from error


def manifest_of(state: NamespaceState, default_analyzer: str) -> Manifest:
    """A namespace's manifest; that of a new namespace names nothing. Raises DamagedError."""
    if not state.manifest and state.generation:
        raise DamagedError(f"the manifest of namespace {state.name} is missing; open the store for writing to rebuild its index")
    return decode_manifest(state.manifest, state.name) if state.manifest else Manifest(default_analyzer)
