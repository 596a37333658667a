"""Searching by channels from the command line, with the encoders that need no model."""

import json
from typing import Any

import pytest

from tests.cli.conftest import Run

BOTH = ("--encoder", "hashing", "--sparse-encoder", "hashing")


@pytest.fixture
def filled(run: Run) -> Run:
    for number, text in enumerate(["the dentist is on Tuesday", "tea with Anna", "the market by the river", "rain on the river"]):
        run("add", text, "--id", f"r{number}", "--session", "s1", *BOTH)
    return run


def found(run: Run, *arguments: str) -> Any:
    return json.loads(run("search", *arguments, "--json", *BOTH).out)


@pytest.mark.parametrize("mode", ["bm25", "dense", "sparse", "rrf", "agent_rrf", "convex"])
def test_every_mode_finds_and_explains(filled: Run, mode: str) -> None:
    answer = found(filled, "river market", "--mode", mode, "--explain")
    assert answer["hits"][0]["record"]["id"] == "r2"
    assert answer["hits"][0]["explanation"]["score"] == answer["hits"][0]["score"]
    assert answer["stages"]["default"] == ([mode] if mode in ("bm25", "dense", "sparse") else ["bm25", "sparse", "dense"])
    table = filled("search", "river market", "--mode", mode, "--explain", *BOTH).out
    assert "# 1: r2" in table and ("dense" in table) == (mode not in ("bm25", "sparse"))


def test_weights_and_what_else_says_how_to_fuse(filled: Run) -> None:
    answer = found(
        filled, "river", "--mode", "convex", "--weights", "bm25=.3, dense=0.7", "--explain", "--context-weight", "0.4", "--passage-penalty", "0.01", "--depth", "3", "-k", "2"
    )
    explanation = answer["hits"][0]["explanation"]
    assert [(channel["channel"], channel["weight"]) for channel in explanation["channels"]] == [("bm25", 0.3), ("dense", 0.7)]
    assert explanation["context"] is not None
    assert not answer["coverage"]["default"]["exact"] and "the best 3 by" in answer["coverage"]["default"]["reason"]
    assert "neighbours' mean" in filled("search", "river", "--mode", "rrf", "--context-weight", "0.4", "--explain", *BOTH).out
    reranked = found(filled, "river", "--rerank", "maxsim", "--rerank-weight", "1", "--rerank-depth", "2", "--explain")
    assert reranked["stages"]["default"] == ["bm25", "maxsim"] and reranked["hits"][0]["explanation"]["reranked"] == 1.0
    assert "reranker" in filled("search", "river", "--rerank", "maxsim", "--explain", *BOTH).out


@pytest.mark.parametrize("weights", ["", "bm25", "bm25=", "bm25=x", "bm25=1,bm25=2", "words=1", "bm25=-1", "bm25=0", "bm25=nan"])
def test_bad_weights_are_named(filled: Run, weights: str) -> None:
    outcome = filled("search", "river", "--mode", "convex", "--weights", weights, *BOTH, code=2)
    assert "weight" in outcome.err and len(outcome.err.splitlines()) == 1


def test_without_an_encoder_it_is_said_how_to_get_one_and_words_are_found(run: Run) -> None:
    run("add", "the market by the river")
    for mode, option in [("dense", "encoder="), ("sparse", "sparse_encoder="), ("rrf", "encoder="), ("convex", "encoder=")]:
        outcome = run("search", "river", "--mode", mode, code=7)
        assert option in outcome.err and "mode='bm25'" in outcome.err and len(outcome.err.splitlines()) == 1
    assert len(found(run, "river")["hits"]) == 1
