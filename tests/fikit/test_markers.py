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


def test_an_event_behind_other_work_tells_nothing_of_a_kernel_before_it(parts: Path) -> None:
    assert counting(parts, "behind") == 0
