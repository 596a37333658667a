"""Benchmarks, each a module run with `python -m benchmarks.NAME [--json]`. Every one prints its rows against the bars that the project sets itself; losses are kept in `LOG.md`."""
