"""A segment in two: the object that is spilled, and the remainder that stays.

The remainder is the segment's file without the sections of `HEAVY` (postings, bitmaps, stored fields), the others byte for byte, and with the ids beside their hashes. So
deletions, statistics, filters, look-ups of terms and ids, and bounds (which read the skylines of blocks, window by window) are answered by it as by the whole file.

The object is a container (`sections.py`) of the heavy sections, each one zstd frame except those that are compressed already, and of a `meta` in JSON: whose documents they are,
and each section's dtype, CRC-32 and size as it was. It is read in the order of its bytes, a section at a time, into a local container of the same sections.

It knows no target: where objects lie is `storage/spill.py`.
"""

import json
import zlib
from collections.abc import Iterator

import numpy as np
import zstandard

from agentir_ray.errors import DamagedError, FormatError
from agentir_ray.lexical.builder import HEAVY
from agentir_ray.lexical.segment import Segment
from agentir_ray.lexical.weights import stamp
from agentir_ray.sections import Array, Section, SectionFile, encode_table, padding

FORMAT_VERSION = 1
LEVEL = 3
_COMPRESSED = ("stored_data",)  # its blocks are zstd frames: another turn gains nothing


def remainder_sections(segment: Segment) -> dict[str, Array]:
    """The sections of the file that stays."""
    sections = {name: segment.array(name) for name in segment.sections if name not in HEAVY}
    if not segment.is_remainder:
        ids = segment.ids()
        sections |= {"id_data": ids.data, "id_start": ids.start}
    return sections


def spilled_sections(segment: Segment) -> dict[str, Array]:
    """The sections of the object."""
    arrays = {name: segment.array(name) for name in HEAVY}
    told = {name: (values.dtype.str, zlib.crc32(values.data), values.nbytes) if len(values) else (values.dtype.str, 0, 0) for name, values in arrays.items()}
    meta = {"format": FORMAT_VERSION, **stamp(segment), "sections": told}
    compressor = zstandard.ZstdCompressor(level=LEVEL)
    frames = {name: values if name in _COMPRESSED else np.frombuffer(compressor.compress(values.data if len(values) else b""), np.uint8) for name, values in arrays.items()}
    return {"meta": np.frombuffer(json.dumps(meta, sort_keys=True).encode(), np.uint8), **frames}


def restored(spilled: SectionFile, segment: Segment) -> Iterator[bytes | memoryview]:
    """From the object to the local container of the heavy sections, as chunks to write one after the other; one section is in memory at a time.

    Raises DamagedError where the object does not hold what its checksums say, or belongs to other documents than the segment's, FormatError for one of a newer version.
    """
    path = spilled.path
    try:
        meta = json.loads(spilled.array("meta").tobytes())
        if meta["format"] > FORMAT_VERSION:
            raise FormatError(f"{path} has spill format {meta['format']}; this version of agentir_ray reads {FORMAT_VERSION}")
        belongs = {name: meta[name] for name in ("namespace", "documents", "seq_crc")}
        sections = [Section(name, *meta["sections"][name]) for name in HEAVY]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{path} has unreadable metadata ({error}); the segment is rebuilt from the log") from error
    if belongs != stamp(segment):
        raise DamagedError(f"{path} holds other documents than those of {segment.path}; the segment is rebuilt from the log")
    yield encode_table(sections)
    for section in sections:
        frame = spilled.array(section.name)
        yield frame.data if section.name in _COMPRESSED else _unpacked(frame, section, str(path))
        yield padding(section.bytes)


def _unpacked(frame: Array, section: Section, path: str) -> bytes:
    try:
        content: bytes = zstandard.ZstdDecompressor().decompress(frame.data, max_output_size=max(1, section.bytes))
    except zstandard.ZstdError as error:
        raise DamagedError(f"{path}: section {section.name!r} cannot be decompressed ({error}); the segment is rebuilt from the log") from error
    if (len(content), zlib.crc32(content)) != (section.bytes, section.crc):
        raise DamagedError(f"{path}: section {section.name!r} is not what was spilled; the segment is rebuilt from the log")
    return content
