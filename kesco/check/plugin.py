"""``pytest --kesco-check``: the tests run under `kesco check`, and a race fails the run.

For a ``conftest.py`` at the top of the tests: ``pytest_plugins = ["kesco.check.plugin"]``.

1. With the option pytest starts itself again, without it, as the program of `kesco check`: libraries that the tests
   load must find the check's CUDA runtime in front of theirs, and that is so only in a new process.
2. That one leaves its exit code in a file. The outer one ends with it, or with 1 if there was a race.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_OPTION = "--kesco-check"
_STATUS = "_KESCO_CHECK_STATUS"  # where the inner pytest leaves its exit code
_LIMIT = "86400"


def pytest_addoption(parser: Any) -> None:
    """The option."""
    parser.addoption(_OPTION, action="store_true", help="run under 'kesco check': a race between streams is a failure")


def pytest_cmdline_main(config: Any) -> int | None:
    """Start pytest again, if the option is there."""
    if not config.getoption(_OPTION):
        return None
    words = [word for word in config.invocation_params.args if word != _OPTION]
    with tempfile.TemporaryDirectory(prefix="kesco-") as folder:
        status = Path(folder, "status")
        inner = (sys.executable, "-m", "pytest", *map(str, words))
        command = (sys.executable, "-m", "kesco", "check", "--show", "--time-limit", _LIMIT, "--", *inner)
        done = subprocess.run(command, env={**os.environ, _STATUS: str(status)}, check=False)
        return int(status.read_text()) or done.returncode if status.exists() else done.returncode or 1


def pytest_sessionfinish(exitstatus: int) -> None:
    """Leave the exit code."""
    if _STATUS in os.environ:
        Path(os.environ[_STATUS]).write_text(str(int(exitstatus)), "utf-8")
