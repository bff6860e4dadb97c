"""A little of `scripts/fikit/attack.py`, without sanitizers; with KESCO_THOROUGH=1 all of it with them."""

# ruff: noqa: T201 - the numbers are the result
from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kesco.toolchain.runtimes import SOURCES
from tests.fikit.yard import HERE, Yard

ROOT = HERE.parents[1]

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@pytest.fixture
def attack(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts/fikit"))
    return importlib.import_module("attack")


def made(folder: Path, source: Path, *names: str) -> Path:
    parts = [str(SOURCES / "fikit" / f"{name}.cpp") for name in names]
    command = ("g++", "-std=c++17", "-O1", "-w", str(source), *parts, "-o", str(folder / "made"), "-ldl", "-lpthread")
    subprocess.run(command, check=True)
    return folder / "made"


@pytest.mark.thorough
def test_anything_may_be_said(yard: Yard, attack: ModuleType, tmp_path: Path) -> None:
    greeter = made(tmp_path, ROOT / "tests/native/greeting_attack.cpp", "greeting", "clock")
    attack.frames(yard, greeter, 1000, 1)


def test_a_client_may_scribble(yard: Yard, attack: ModuleType) -> None:
    attack.scribbles_to_daemon(yard, 2000, 1)


def test_a_daemon_may_scribble(yard: Yard, attack: ModuleType, tmp_path: Path) -> None:
    names = [name for name in attack.programs._CLIENT if not name.startswith("intercept")]
    attack.scribbles_to_client(yard, made(tmp_path, HERE / "hooked_task.cpp", *names), 2000, 1)


def test_anybody_may_be_stopped(yard: Yard, attack: ModuleType) -> None:
    attack.stops(yard, 6, 1)


@pytest.mark.thorough
def test_all_of_it() -> None:
    done = subprocess.run((sys.executable, "scripts/fikit/attack.py"), cwd=ROOT, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
