"""The command line as its users meet it: in this process for most tests (`run`), in a process of its own for what only that shows (`run_process`)."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentir_ray.cli import app


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Run = Callable[..., Outcome]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def run(store: Path) -> Run:
    """Run a command on `store` and expect `code`."""

    def run(*arguments: str, code: int = 0, input: str | None = None) -> Outcome:
        result = CliRunner().invoke(app, list(arguments), input=input, env={"AGENTIR_STORE": str(store), "COLUMNS": "160"})
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == code, result.output
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def run_process(store: Path) -> Run:
    """The same in a process of its own; `environment` is added to this one's."""

    def run_process(*arguments: str, code: int = 0, **environment: str) -> Outcome:
        command = [sys.executable, "-c", "from agentir_ray.cli import main; main()", *arguments]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False, env=os.environ | {"AGENTIR_STORE": str(store)} | environment)
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        assert done.returncode == code, err
        return Outcome(code, out, err)

    return run_process
