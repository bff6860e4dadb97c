"""The parts of a `Yard`, made once for all tests."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kesco.fikit import programs
from kesco.toolchain.runtimes import SOURCES
from tests.fikit.yard import HERE, Yard

PROGRAMS = {"task": (), "careless": (), "lender": ("clock",), "counting": ("markers", "driver", "clock")}
"""Each with what it needs of the runtime."""


def made(folder: Path) -> Path:
    """The drivers and the programs, in a folder."""
    common = ("g++", "-std=c++17", "-O1", "-Wall", "-Wextra")
    shared = ("-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so.1", str(HERE / "fake_driver.cpp"))
    (folder / "old").mkdir()
    subprocess.run((*common, *shared, "-ldl"), cwd=folder, check=True)
    subprocess.run((*common, "-DOLD_DRIVER", *shared, "-ldl"), cwd=folder / "old", check=True)
    for name, own in PROGRAMS.items():
        sources = (HERE / f"{name}.cpp", *(SOURCES / "fikit" / f"{one}.cpp" for one in own))
        subprocess.run((*common, "-o", name, *map(str, sources), "-ldl", "-lpthread"), cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="session")
def runtime() -> tuple[Path, Path]:
    with ThreadPoolExecutor(2) as pool:
        client, daemon = pool.submit(programs.client), pool.submit(programs.daemon)
        return client.result(), daemon.result()


@pytest.fixture
def yard(tmp_path: Path, parts: Path, runtime: tuple[Path, Path]) -> Iterator[Yard]:
    made = Yard(tmp_path, parts, *runtime)
    yield made
    made.close()


@pytest.fixture
def open_yard(parts: Path, runtime: tuple[Path, Path]) -> Iterator[Yard]:
    """One whose folder others can search."""
    with tempfile.TemporaryDirectory(prefix="kesco-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        made = Yard(Path(folder), parts, *runtime)
        yield made
        made.close()
