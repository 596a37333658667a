"""encode, reembed, and commands that encode what they store."""

import json

from tests.cli.conftest import Run


def test_what_is_added_with_an_encoder_has_its_vectors(run: Run) -> None:
    run("add", "tea", "--encoder", "hashing", "--sparse-encoder", "hashing")
    channels = json.loads(run("stats", "--json").out)["namespace"]["channels"]
    assert {name: (told["encoded_records"], told["records"], told["lag_entries"]) for name, told in channels.items()} == {"dense": (1, 1, 0), "sparse": (1, 1, 0)}


def test_encode_finishes_and_reembed_begins_anew(run: Run) -> None:
    for text in ("tea", "coffee", "water"):
        run("add", text)
    assert "dense: 3 of 3 records by hashing@" in run("encode", "--encoder", "hashing").out
    assert json.loads(run("reembed", "--encoder", "hashing", "--json").out)["dense"]["encoded_records"] == 3
    assert "give --encoder" in run("encode", code=7).err
    assert "no encoder" in run("encode", "--encoder", "nonsense", code=7).err
