"""The oracle of retention: which records go, by sorting them all. Plain Python, no shared code, no thought of speed."""

from collections.abc import Callable, Sequence

from agentir_ray.types import Record


def naive_retention(records: Sequence[Record], keep_last: int | None, cutoff_us: float | None, pinned: Callable[[Record], bool]) -> list[str]:
    """Ids of the records that go: beyond the newest `keep_last` by (timestamp, seq), or before `cutoff_us`; never a pinned one."""
    newest_first = sorted(records, key=lambda record: (record.timestamp_us, record.seq), reverse=True)
    going = [
        record.id
        for place, record in enumerate(newest_first)
        if ((keep_last is not None and place >= keep_last) or (cutoff_us is not None and record.timestamp_us < cutoff_us)) and not pinned(record)
    ]
    return sorted(going)
