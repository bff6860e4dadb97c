"""The one place that starts other programs.

In: an argument vector. Out: a frozen `Finished` with what the program returned and wrote. A program that ran and
failed is a value (its return code says so); a program that could not be run at all is a `ToolchainError`, because only
the user's machine can mend that. There is no shell anywhere, so no argument is ever split or expanded.

A program that runs too long is ended together with its children (nvcc starts half a dozen).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError

CANNOT_START = "K505"
TOO_SLOW = "K506"


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ran to its end."""

    argv: tuple[str, ...]
    returncode: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        """What the program wrote, as text."""
        return self.stdout.decode("utf-8", errors="replace")

    @property
    def command(self) -> str:
        """The command as one would type it."""
        return shlex.join(self.argv)


def run(
    argv: Sequence[str],
    *,
    cwd: str | Path | None = None,
    input: bytes | None = None,
    timeout: float | None = 60.0,
    env: Mapping[str, str] | None = None,
    through: bool = False,
) -> Finished:
    """Run a program to its end; a `ToolchainError` if it cannot be started or takes over `timeout` seconds.

    With `through` it reads and writes what this program does, and belongs to the same terminal: nothing is returned of
    what it wrote.
    """
    command = tuple(str(argument) for argument in argv)
    try:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=None if through else subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=None if through else subprocess.PIPE,
            stderr=None if through else subprocess.PIPE,
            start_new_session=not through,
        )
    except (OSError, ValueError) as problem:
        raise _cannot_start(command, cwd, problem) from problem
    try:
        stdout, stderr = child.communicate(input, timeout)
    except subprocess.TimeoutExpired as problem:
        _end(child, through)
        raise _too_slow(command, timeout) from problem
    except BaseException:
        _end(child, through)
        raise
    return Finished(command, child.returncode, stdout or b"", (stderr or b"").decode("utf-8", errors="replace"))


def _end(child: subprocess.Popen[bytes], alone: bool) -> None:
    """End the program and, unless it is in this one's process group, whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if alone:
            child.kill()
        else:
            os.killpg(child.pid, signal.SIGKILL)
    child.communicate()


def _cannot_start(command: tuple[str, ...], cwd: str | Path | None, problem: Exception) -> ToolchainError:
    name = command[0] if command else ""
    if cwd is not None and not Path(cwd).is_dir():
        reason, step = (
            f"the folder '{cwd}' does not exist",
            "create it, or run kesco from a folder that exists",
        )
    elif isinstance(problem, FileNotFoundError):
        reason, step = (
            "there is no such program",
            "'kesco doctor' lists what kesco looks for and how to get it",
        )
    elif isinstance(problem, PermissionError):
        reason, step = "it is not executable", f"chmod +x {shlex.quote(name)}, or name another program"
    elif isinstance(problem, OSError):
        reason, step = problem.strerror or str(problem), "check that the file is a program for this machine"
    else:
        reason, step = str(problem), "remove the null byte from the argument"
    return ToolchainError(Diagnostic(CANNOT_START, Severity.ERROR, f"cannot run '{name}': {reason}", help=step))


def _too_slow(command: tuple[str, ...], timeout: float | None) -> ToolchainError:
    return ToolchainError(
        Diagnostic(
            TOO_SLOW,
            Severity.ERROR,
            f"'{command[0]}' did not finish within {timeout:g} seconds and was ended",
            help=f"run it by hand to see where it hangs: {shlex.join(command)}",
        )
    )
