"""What every test may use: the shared data where it is there, the long form where it is asked for, and how hypothesis searches."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import agentir_ray

LONG = os.environ.get("AGENTIR_LONG", "") not in ("", "0")
SHARED = Path(os.environ.get("AGENTIR_SHARED") or Path(__file__).resolve().parents[2] / "shared")

# No deadline: the first example may wait for a kernel to be compiled.
settings.register_profile("short", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", parent=settings.get_profile("short"), max_examples=2_000)
settings.load_profile("long" if LONG else "short")


def pytest_configure(config: pytest.Config) -> None:
    """Forget compiled kernels that are older than some kernel's source: Numba looks only at the file of the kernel itself, not at those whose functions it took in."""
    if hasattr(config, "workerinput"):
        return
    kernels = Path(agentir_ray.__file__).parent / "kernels"
    compiled = list((kernels / "__pycache__").glob("*.nb[ci]"))
    if compiled and max(source.stat().st_mtime for source in kernels.glob("*.py")) > min(file.stat().st_mtime for file in compiled):
        for file in compiled:
            file.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def long_form() -> bool:
    """True under `make crash` and `make soak`: do the full number of rounds instead of a sample."""
    return LONG


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of third-party data and golden files, which is no part of the repository; skips where it is absent."""
    if not (SHARED / "data").is_dir():
        pytest.skip(f"no shared data at {SHARED}; set AGENTIR_SHARED to run this test")
    return SHARED
