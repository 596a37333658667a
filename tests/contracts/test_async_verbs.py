"""`AsyncMemory` is `Memory` and nothing else: every verb of one is a verb of the other."""

import inspect

from agentir_ray import AsyncMemory, Memory
from agentir_ray.client.asynchronous import VERBS

WRITTEN_OUT = {"open", "use", "export", "namespace"}  # they return what is not a plain answer


def public(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def test_every_verb_of_memory_is_one_of_async_memory() -> None:
    verbs = public(Memory)
    assert "search" in verbs
    assert verbs - WRITTEN_OUT == VERBS, "Memory has a verb that AsyncMemory lacks, or the reverse: see agentir_ray.client.asynchronous.VERBS"
    assert public(AsyncMemory) | {"namespace"} == WRITTEN_OUT
    assert all(callable(getattr(Memory, verb)) for verb in VERBS)


def test_what_is_written_out_takes_the_same_arguments() -> None:
    for name in ("use", "export"):
        ours, theirs = (list(inspect.signature(getattr(of, name)).parameters.values()) for of in (AsyncMemory, Memory))
        assert ours == theirs, name
