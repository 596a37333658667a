"""The command line `agentir`: the verbs of `Memory`, for people and scripts. The only place that imports typer and rich."""

from agentir_ray.cli.app import app, main

__all__ = ["app", "main"]
