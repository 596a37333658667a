"""What tells one model's vectors from another's, without loading it.

A revision is a hash over what the vectors depend on: files and settings. Of a large file its length and samples are read: the beginning (where formats have their header), the
end, and blocks in between. Models that differ by training differ everywhere, and a quantised or pruned one has another length.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentir_ray.errors import EncoderMissingError

WHOLE = 1 << 20  # bytes; a file up to this is read whole
BLOCK = 1 << 12
BLOCKS = 64


def revision(files: Iterable[Path], **settings: Any) -> str:
    """16 hexadecimal digits. Files that do not exist are left out, so that optional ones can be named."""
    hashed = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for file in files:
        if file.is_file():
            status = file.stat()
            hashed.update(f"\0{file.name}\0".encode() + _sampled(file, status.st_size, status.st_mtime_ns))
    return hashed.hexdigest()[:16]


@lru_cache(maxsize=256)
def _sampled(file: Path, size: int, _changed: int) -> bytes:
    hashed = hashlib.sha256(str(size).encode())
    try:
        with file.open("rb") as opened:
            if size <= WHOLE:
                hashed.update(opened.read())
            else:
                hashed.update(opened.read(WHOLE // 16))
                for block in range(BLOCKS):
                    opened.seek((size - BLOCK) * (block + 1) // BLOCKS)
                    hashed.update(opened.read(BLOCK))
    except OSError as error:
        raise EncoderMissingError(f"{file} cannot be read: {error.strerror}. Install the model again, or name another.") from error
    return hashed.digest()
