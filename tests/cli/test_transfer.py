"""import, export, backup."""

import gzip
import json
import os
import re
import stat
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import pytest

from agentir_ray import DamagedError, Record
from tests.cli.conftest import Run


def texts(run: Run, *arguments: str) -> list[str]:
    return [record["text"] for record in json.loads(run("recent", "--json", *arguments).out)["records"]]


def test_export_and_import_are_inverse(run: Run, tmp_path: Path) -> None:
    run("add", "first 日本", "--timestamp", "2026-01-01", "--importance", "0.5", "--metadata", '{"k": [1]}')
    run("add", "second", "--timestamp", "2026-01-02", "--session", "s")
    for name in ("all.jsonl", "all.jsonl.gz"):
        assert "exported 2 records" in run("export", str(tmp_path / name)).out
        assert "added 2" in run("import", str(tmp_path / name), "-n", name).out
        again = run("export", "-", "-n", name).out
        assert again.splitlines()[1:] == run("export", "-").out.splitlines()[1:]
    assert "added 0, already there 2" in run("import", str(tmp_path / "all.jsonl"), "-n", "all.jsonl").out
    assert not list(tmp_path.glob("*.partial"))


def test_import_from_standard_input(run: Run) -> None:
    run("import", "-", input='[{"role": "user", "content": "piped tea"}]')
    assert texts(run) == ["piped tea"]


def test_f07_what_is_damaged_is_reported_and_the_rest_is_stored(run: Run, tmp_path: Path) -> None:
    run("add", "first")
    run("add", "second")
    header, first, second = run("export").out.splitlines()
    path = tmp_path / "torn.jsonl"
    path.write_text("\n".join([header, first[:15], second, '{"id": "x", "text": "t", "importance": 7}']))
    outcome = run("import", str(path), "-n", "copy", code=1)
    assert "torn.jsonl, line 2" in outcome.err
    assert "added 1, already there 0, not stored 2" in outcome.out


def test_import_reports_as_json(run: Run) -> None:
    report = json.loads(run("import", "-", "--json", input='{"role": "user", "content": "tea"}').out)
    assert (report["added"], report["duplicates"], report["failed"], report["namespaces"]) == (1, 0, [], ["default"])


@pytest.fixture
def notes(tmp_path: Path) -> str:
    """A file of 3,500 records, of which one cannot be stored."""
    path = tmp_path / "notes.jsonl"
    records = [{"id": f"i{n}", "text": f"tea {n}", "importance": 7 if n == 2_500 else 0} for n in range(3_500)]
    path.write_text("".join(json.dumps(line) + "\n" for line in ({"format": "agentir-export", "version": 1}, *records)))
    return str(path)


def test_a_terminal_sees_how_many_are_stored_how_fast_and_for_how_long(run_on_terminal: Run, notes: str) -> None:
    outcome = run_on_terminal("import", notes, code=1)
    assert re.search(r"importing .*3,499 records, [\d,]+/s.* 0:00:\d\d", outcome.err)
    assert outcome.out.startswith("added 3,499, already there 0, not stored 1")
    assert re.search(r"importing .*3,499 records", run_on_terminal("import", notes, code=1).err), "what is there already is done as well"
    assert re.search(r"exporting .*3,499 records", run_on_terminal("export", os.devnull).err)


def test_programs_and_log_files_see_no_progress(run_on_terminal: Run, run_process: Run, notes: str) -> None:
    assert json.loads(run_on_terminal("import", notes, "--json", code=1).out)["added"] == 3_499
    for outcome in (
        run_on_terminal("import", notes, "-n", "json", "--json", code=1),
        run_on_terminal("import", notes, "-n", "dumb", code=1, TERM="dumb"),
        run_process("import", notes, "-n", "pipe", code=1),
        run_process("import", notes, "-n", "colour", code=1, FORCE_COLOR="1"),
    ):
        assert outcome.err.count("\n") == 1 and outcome.err.startswith("agentir: not stored: ")


@pytest.mark.parametrize(("file", "code"), [("absent.json", 3), ("wrong.json", 2)])
def test_files_that_cannot_be_imported(run: Run, tmp_path: Path, file: str, code: int) -> None:
    (tmp_path / "wrong.json").write_text("{")
    outcome = run("import", str(tmp_path / file), code=code)
    assert file in outcome.err


def test_export_to_where_nothing_can_be_written(run: Run, tmp_path: Path) -> None:
    run("add", "tea")
    for place in (tmp_path / "no" / "such" / "folder", tmp_path):
        assert f"{place}: cannot be written" in run("export", str(place), code=2).err
    assert not list(tmp_path.rglob("*.partial"))


def test_an_export_replaces_a_file_and_nothing_else(run: Run, tmp_path: Path) -> None:
    run("add", "tea")
    expected = run("export").out

    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    run("export", str(link))
    assert link.is_symlink() and real.read_text() == expected and stat.S_IMODE(real.stat().st_mode) == 0o600

    dangling = tmp_path / "dangling.jsonl"
    dangling.symlink_to(tmp_path / "elsewhere.jsonl")
    run("export", str(dangling))
    assert dangling.is_symlink() and (tmp_path / "elsewhere.jsonl").read_text() == expected

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    run("export", str(pipe))
    reader.join(60)
    assert got == [expected] and stat.S_ISFIFO(pipe.stat().st_mode)

    run("export", "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_export_that_fails_leaves_the_file_that_was_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Exception] = [OSError(28, "No space left on device"), DamagedError("seq 3 is damaged"), PermissionError(13, "no")]

    def fails(records: Iterable[Record], out: TextIO, namespace: str) -> int:
        out.write("half")
        raise errors.pop(0)

    run("add", "tea")
    place = tmp_path / "all.jsonl"
    place.write_text("old")
    monkeypatch.setattr("agentir_ray.cli.transfer.write_export", fails)
    for code, told in ((5, "make room"), (6, "seq 3"), (5, "refused")):
        outcome = run("export", str(place), code=code)
        assert told in outcome.err
        assert place.read_text() == "old" and not list(tmp_path.glob("*.partial"))


def test_what_cannot_be_exported_or_imported_leaves_nothing_behind(run: Run, store: Path, tmp_path: Path) -> None:
    run("import", str(tmp_path / "absent.json"), code=3)
    run("import", "-", input="plain text", code=2)
    assert not store.exists()
    run("add", "tea")
    assert run("export", "-n", "typo", code=3).out == ""
    run("export", str(tmp_path / "typo.jsonl"), "-n", "typo", code=3)
    assert not (tmp_path / "typo.jsonl").exists()


def test_reports_as_json(run: Run, tmp_path: Path) -> None:
    run("add", "tea")
    place = str(tmp_path / "all.jsonl")
    assert json.loads(run("export", place, "--json").out) == {"namespace": "default", "records": 1, "file": place}
    assert "JSON Lines already" in run("export", "--json", code=2).err
    assert json.loads(run("backup", str(tmp_path / "copy"), "--json").out) == {"folder": str(tmp_path / "copy")}


def test_backup_is_a_store(run: Run, tmp_path: Path) -> None:
    run("add", "tea")
    run("backup", str(tmp_path / "copy"))
    assert texts(run, "--store", str(tmp_path / "copy")) == ["tea"]


def test_locomo_end_to_end(run: Run, shared: Path) -> None:
    outcome = run("import", "--format", "locomo", str(shared / "data/locomo/locomo10.json.gz"), "-n", "locomo")
    assert "added 5,882, already there 0, not stored 0 in 10 namespaces" in outcome.out
    answer = json.loads(run("search", "-n", "locomo", "When did Caroline go to the LGBTQ support group?", "--json").out)
    found = {hit["record"]["id"]: hit for hit in answer["hits"]}
    assert found["conv-26/D1:3"]["namespace"] == "locomo/conv-26"
    assert found["conv-26/D1:3"]["record"]["timestamp"].startswith("2023-05-08")
    assert "2023-05-08" in run("search", "-n", "locomo/conv-26", "When did Caroline go to the LGBTQ support group?").out


def test_beam_end_to_end(run: Run, shared: Path) -> None:
    run("import", str(shared / "data/beam/100K/1/chat.json.gz"), "-n", "beam")
    answer = json.loads(run("search", "-n", "beam", "budget tracker deadline", "--json").out)
    assert {hit["namespace"] for hit in answer["hits"]} == {"beam/100K/1"}


def test_a_gzip_that_is_cut_off_stores_what_it_holds(run: Run, tmp_path: Path) -> None:
    run("add", "tea")
    path = tmp_path / "cut.jsonl.gz"
    lines = run("export").out.encode() + b"".join(json.dumps({"id": f"i{n}", "text": f"text {n * 7919}"}).encode() + b"\n" for n in range(2_000))
    path.write_bytes(gzip.compress(lines)[:-3_000])
    outcome = run("import", str(path), "-n", "copy", code=1)
    assert "cut off" in outcome.err


@pytest.mark.parametrize("sample", ["a//b", "x" * 600, "line\nbreak", 5])
def test_a_chat_whose_name_is_none_for_a_namespace_costs_one_chat(run: Run, sample: object) -> None:
    chats = [
        {"sample_id": name, "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "tea"}]}}
        for name in (sample, "good")
    ]
    outcome = run("import", "-", "-n", "x", input=json.dumps(chats), code=0 if sample == 5 else 1)
    assert outcome.out.startswith("added 2" if sample == 5 else "added 1")
    assert texts(run, "-n", "x/good") == ["Ann: tea"]
