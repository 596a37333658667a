"""kill -9 at random moments, on one store that is carried on over all rounds: what was acknowledged is there, once and whole; what was erased is not; nothing is left lying about.

Also at certain ones: at each call to the operating system that sealing, merging and purging make.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROUNDS = 200


def drive(*arguments: str, timeout_s: float) -> str:
    """Run the driver; its output. A process of its own, because forks want one without threads."""
    command = [sys.executable, "-m", "tests.crash.kill_driver", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, done.stderr[-8_000:]
    return done.stdout


@pytest.mark.crash
def test_kill_9_at_random_moments_loses_nothing(tmp_path: Path, long_form: bool) -> None:
    rounds = int(os.environ.get("AGENTIR_CRASH_ROUNDS") or (10 * ROUNDS if long_form else ROUNDS))
    seed = int(os.environ.get("AGENTIR_CRASH_SEED") or random.SystemRandom().randrange(1_000_000))
    print(f"seed {seed}")
    assert f"{rounds} kills" in drive(str(tmp_path / "store"), "moments", str(rounds), str(seed), timeout_s=60 + 5 * rounds)


@pytest.mark.crash
def test_kill_9_at_each_call_of_maintenance_loses_nothing(tmp_path: Path) -> None:
    assert "killed at each of" in drive(str(tmp_path), "calls", timeout_s=300)
