"""stats, verify, doctor, and how commands end."""

import json
import re
from pathlib import Path

import pytest

import agentir_ray
from agentir_ray import Memory
from agentir_ray.cli.options import default_store
from agentir_ray.encoders.catalogue import DENSE_ENCODERS, SPARSE_ENCODERS
from tests.cli.conftest import Run


def test_stats(run: Run) -> None:
    run("add", "tea")
    assert json.loads(run("stats", "--json").out)
    assert run("stats").out.strip()


def test_verify_finds_nothing_in_a_sound_store(run: Run) -> None:
    run("add", "tea")
    assert "no damage found" in run("verify").out
    assert json.loads(run("verify", "--json").out) == []


def test_doctor_names_versions_and_places(run: Run, store: Path) -> None:
    findings = json.loads(run("doctor", "--json").out)
    assert findings["store"] == str(store)
    assert findings["store's state"].startswith("not there yet")
    assert findings["kernels cached in"]
    run("add", "tea")
    assert "opens; 1 namespaces" in run("doctor").out


def test_doctor_lists_the_encoders_and_how_to_get_what_is_not_here(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for here in (True, False):
        monkeypatch.setattr("agentir_ray.encoders.catalogue.importlib.util.find_spec", lambda name, here=here: here or None)
        findings = json.loads(run("doctor", "--json").out)
        for option, entries in (("--encoder", DENSE_ENCODERS), ("--sparse-encoder", SPARSE_ENCODERS)):
            for name, entry in entries.items():
                told = findings[f"{option} {name}"]
                state = f"not installed: {entry.install}" if entry.needs and not here else "packages are installed; the model" if entry.hub else "installed"
                assert told.startswith(state) and entry.about in told and entry.hub in told


def test_no_secret_of_the_spill_target_is_shown(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("add", "tea")
    assert json.loads(run("stats", "--json").out)["store"]["spill"] is None
    assert re.search(r"store\.spill +none", run("stats").out)
    monkeypatch.setenv("AGENTIR_SPILL", "memory://user:hunter2@host/path?token=hunter2")
    for command in ("doctor", "stats"):
        assert "memory://host/path" in run(command).out and "hunter2" not in run(command).out


def test_a_store_that_is_not_there(run: Run, store: Path) -> None:
    for command in (["search", "x"], ["recent"], ["stats"], ["export"], ["forget", "--id", "a"]):
        assert run(*command, code=3).err.startswith("agentir: ")
    assert not store.exists()


def test_f11_a_second_writer_is_refused_and_readers_are_not(run: Run, run_process: Run, store: Path) -> None:
    with Memory.open(store) as memory:
        memory.add("tea")
        outcome = run_process("add", "more tea", code=5)
        assert outcome.err.startswith("agentir: ")
        assert "Traceback" not in outcome.err
        assert "tea" in run_process("search", "tea").out


def test_a_terminal_of_another_encoding_gets_escapes(run: Run, run_process: Run) -> None:
    run("add", "tea 茶 🌍")
    assert "\\u8336" in run_process("search", "tea", PYTHONIOENCODING="ascii").out
    hits = json.loads(run_process("search", "tea", "--json", PYTHONIOENCODING="ascii").out)["hits"]
    assert hits[0]["record"]["text"] == "tea 茶 🌍"


def test_f08_the_default_store_is_the_users_and_not_the_packages() -> None:
    assert Path(agentir_ray.__file__).parent not in default_store().parents


def test_help_lists_the_commands(run: Run) -> None:
    out = run("--help").out
    for command in ("add", "search", "recent", "import", "export", "backup", "forget", "drop", "stats", "verify", "doctor", "demo"):
        assert command in out
    assert run("--version").out.startswith("agentir ")
    run("search", code=2)
    run("magic", code=2)
