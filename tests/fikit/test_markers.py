"""Which launches count as ended: by the very code that counts them, with a driver that has no GPU."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def counting(parts: Path, which: str, driver: str = ".") -> int:
    """What `counting.cpp` prints."""
    env = dict(os.environ) | {"LD_LIBRARY_PATH": str(parts / driver)}
    done = subprocess.run([parts / "counting", which], env=env, check=True, capture_output=True, text=True, timeout=30)
    return int(done.stdout)


def test_a_wait_for_one_stream_ends_only_what_was_on_it(parts: Path) -> None:
    assert counting(parts, "beside") == 4


@pytest.mark.parametrize(("which", "ended"), [("waits", 2), ("goes on", 3)])
def test_what_is_waited_for_is_not_old(parts: Path, which: str, ended: int) -> None:
    """An event on another stream stands for it only where nobody waits and 0.1 s are over."""
    assert counting(parts, which) == ended


def test_an_event_behind_other_work_tells_nothing_of_a_kernel_before_it(parts: Path) -> None:
    assert counting(parts, "behind") == 0


@pytest.mark.parametrize(("which", "driver", "later"), [("same", ".", 1), ("anew", ".", 0), ("same", "old", 0)])
def test_only_on_a_stream_known_by_its_number_is_an_end_told_later(
    parts: Path, which: str, driver: str, later: int
) -> None:
    """Not on a new one that has the handle of the last, and not where the driver gives no numbers."""
    assert counting(parts, which, driver) == later
