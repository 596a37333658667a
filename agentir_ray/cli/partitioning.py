"""`agentir repartition`: how wide a namespace's time partitions are."""

from typing import Annotated

import typer

from agentir_ray.cli.console import counted, stdout
from agentir_ray.cli.options import Namespace, Store, opened


def repartition(
    width: Annotated[str, typer.Argument(help="The width of a partition, e.g. 1d; 7d at first.")],
    store: Store = None,
    namespace: Namespace = "default",
) -> None:
    """Give a namespace time partitions of another width. Rewrites nothing; how old what is asked for is gets learnt anew."""
    with opened(store, namespace, write=True) as memory:
        memory.repartition(width)
        told = memory.stats()["namespace"]
    stdout().print(f"{counted(told['partitions'], 'partition')} of {width}")
