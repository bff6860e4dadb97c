"""What the tests of the FIKIT runtime share: a folder with a device, a daemon and programs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from kesco.errors import ToolchainError
from kesco.fikit import serving

HERE = Path(__file__).parent
LIMIT = 30.0
FOREVER = ("100000", "20", "200", "0")  # a task that does not end; under the policy "exclusive" nobody gets in between


class Yard:
    """A folder with a device, a daemon and programs; all that it starts is ended with it."""

    def __init__(self, folder: Path, parts: Path, client: Path, daemon: Path) -> None:
        self.folder, self.parts, self.client, self.program = folder, parts, client, daemon
        self.socket = folder / "s"
        self.children: list[subprocess.Popen[str]] = []

    def start(self, words: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        child = subprocess.Popen(words, env=env, stdout=pipe, stderr=pipe, text=True)
        self.children.append(child)
        return child

    def daemon(self, *words: str, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        child = self.start([*before, str(self.program), "--socket", str(self.socket), *words], dict(os.environ))
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    def task(
        self, priority: int, *words: str, deadline: int = 10000, old: bool = False, program: str = "task",
        before: tuple[str, ...] = (), **more: str,
    ) -> subprocess.Popen[str]:  # fmt: skip
        """A task; `old`: under a driver that lacks what came later; `before`: what starts it."""
        driver = self.parts / "old" if old else self.parts
        own = dict(os.environ) | {"LD_LIBRARY_PATH": str(driver), "FAKE_GPU": str(self.folder / "gpu")}
        own |= {name: more.pop(name) for name in tuple(more) if name.startswith("FAKE_")}
        settings = {"SOCKET": str(self.socket), "PRIORITY": str(priority), "DEADLINE_MS": str(deadline)}
        return self.start(
            [*before, str(self.parts / program), *words], serving.environment(self.client, settings | more, own)
        )

    def ends(self, child: subprocess.Popen[str], within: float = LIMIT) -> float:
        """Seconds from now until a task ends well."""
        begin = time.monotonic()
        _, err = child.communicate(timeout=within)
        assert child.returncode == 0, err
        return time.monotonic() - begin

    def until(self, true: Any, what: str) -> dict[str, Any]:
        """The daemon's state, once it is as wanted."""
        for _ in range(600):
            with contextlib.suppress(ToolchainError):
                found = serving.status(self.socket)
                if true({one["priority"]: one for one in found["tasks"]}):
                    return found
            time.sleep(0.01)
        pytest.fail(f"never: {what}")

    def held(self) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
        """A task that never rests, and one that waits at its launch behind it."""
        high = self.task(9, *FOREVER)
        self.until(lambda t: 9 in t and t[9]["launched"] > 50, "the high task launches")
        low = self.task(1, "3", "5", "50", "0")
        self.until(lambda t: 1 in t and t[1]["waiting"] and t[9]["launched"] > 50, "the low task waits")
        return high, low

    def close(self) -> None:
        for child in self.children:
            if child.poll() is None:
                inner = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
                child.send_signal(signal.SIGKILL)
                for one in inner:  # else they keep its output open, and nobody ever reads its end
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(one), signal.SIGKILL)
            child.communicate(timeout=LIMIT)
