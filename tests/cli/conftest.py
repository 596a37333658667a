"""The command line as its users meet it: in this process for most tests (`run`), in a process of its own for what only that shows (`run_process`)."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agentir_ray.cli import app


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


Run = Callable[..., Outcome]
_CONTROL = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


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


@pytest.fixture
def run_on_terminal(store: Path) -> Run:
    """The same with a terminal as its standard error; `err` is everything that was written to it, without what colours it and moves the cursor."""

    def run_on_terminal(*arguments: str, code: int = 0, **environment: str) -> Outcome:
        screen, terminal = pty.openpty()
        command = [sys.executable, "-c", "from agentir_ray.cli import main; main()", *arguments]
        environment = {"AGENTIR_STORE": str(store), "TERM": "xterm", "COLUMNS": "100"} | environment
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=os.environ | environment) as process, ThreadPoolExecutor(1) as pool:
            os.close(terminal)
            shown = pool.submit(_all_of, screen)
            out, _ = process.communicate(timeout=120)
            err = _CONTROL.sub("", shown.result(60).decode(errors="replace"))
        os.close(screen)
        assert process.returncode == code, err
        return Outcome(code, out.decode(errors="replace"), err)

    return run_on_terminal


def _all_of(screen: int) -> bytes:
    """What is written to a terminal until nobody has it open any more, which Linux tells by an error."""
    found = b""
    with suppress(OSError):
        while more := os.read(screen, 65_536):
            found += more
    return found
