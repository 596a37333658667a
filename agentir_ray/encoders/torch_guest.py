"""torch as a guest in the process: its threads for the length of a call, and no progress bars."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """torch has one number for the whole process; it is put back, so that others' work is as before."""
    import torch

    before = torch.get_num_threads()
    if before != threads:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        if before != threads:
            torch.set_num_threads(before)


@contextmanager
def quiet() -> Iterator[None]:
    """While a model loads: transformers would draw progress bars on stderr."""
    from transformers.utils import logging

    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if drawn:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
