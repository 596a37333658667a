"""Our lexical engine beside its real peers: the same tokens, the same queries, the same k, in one run (`python -m benchmarks.compare.lexical`)."""
