"""MPS for FIKIT: with it kernels of several processes run at once, and a lower one can be kept off some of the SMs.

In: a daemon's socket, beside which MPS has its folder, and a task's priority. Out: MPS that runs or is asked to end,
and the environment with which a program comes to it. A module of its own because it is no part of the daemon: who
serves starts it, and programs go on without it.

1. `start` starts ``nvidia-cuda-mps-control`` with its pipes in that folder, or goes on with what runs there, and writes
   down which share of the SMs a lower task gets. A share is fixed when a program begins; when it may launch is not, and
   that is what FIKIT decides.
2. `environment` leads a program there, if it lives, and else nowhere: then the program runs without MPS.
3. `served` runs the daemon. Where MPS dies, its programs have died with it; the daemon is begun anew without it, and
   programs that come then run without it too.
4. `stop` asks it to end as soon as its last program has. It is never made to end before: that would end programs.

Where there is no ``nvidia-cuda-mps-control``, or it does not start, that is a `ToolchainError` (K555).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError
from kesco.toolchain.process import Finished, run

NO_MPS = "K555"
HIGHEST = 9
"""Tasks of this priority have all SMs."""
_CONTROL = "nvidia-cuda-mps-control"
_PATIENCE, _LOOK = 20.0, 0.5  # seconds


def folder(socket: Path) -> Path:
    """Where the pipes of a daemon's MPS are."""
    return socket.with_suffix(".mps")


def start(socket: Path, share: int, environ: Mapping[str, str] = os.environ) -> None:
    """MPS for programs of this user, of which lower ones have this part of the SMs, in percent."""
    place = folder(socket)
    if not shutil.which(_CONTROL, path=environ.get("PATH")):
        help_ = f"{_CONTROL} comes with the driver; in a container mount it, or serve without --mps"
        raise ToolchainError(Diagnostic(NO_MPS, Severity.ERROR, f"there is no {_CONTROL}", help=help_))
    try:
        (place / "log").mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        what = f"{place} cannot be made: {error.strerror}"
        raise ToolchainError(Diagnostic(NO_MPS, Severity.ERROR, what, help="remove what is there")) from None
    if not lives(socket):
        done = _control(place, ("-d",), environ)
        if done.returncode or not lives(socket):
            help_ = f"see {place}/log; another MPS of this GPU may have to end first, and MIG must be off"
            what = f"MPS does not start: {(done.text + done.stderr).strip() or 'it says nothing'}"
            raise ToolchainError(Diagnostic(NO_MPS, Severity.ERROR, what, help=help_))
    (place / "share").write_text(f"{share}\n")


def lives(socket: Path) -> bool:
    """Whether MPS runs for this daemon's programs."""
    try:
        number = int((folder(socket) / f"{_CONTROL}.pid").read_text())
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError):
        return False
    return state not in "ZX"  # nobody waits for it in a container without an init


def served(
    command: Sequence[str], beside: Sequence[str], socket: Path, kept: Sequence[int], tell: Callable[[str], None]
) -> int:
    """Runs the daemon until it ends or a signal ends it, with the words `beside` while MPS lives; its exit code."""
    child: subprocess.Popen[bytes] | None = None
    asked: list[int] = []

    def pass_on(number: int, _: object) -> None:
        asked.append(number)
        if child is not None:
            child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    child = subprocess.Popen((*command, *beside), pass_fds=kept)
    with_mps = True
    while True:
        if asked:  # perhaps before the daemon that runs now was known here
            child.send_signal(asked.pop())
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = child.wait(_LOOK)
            stop(socket)
            return code if code >= 0 else 128 - code
        if with_mps and not lives(socket):
            with_mps = False
            leave(socket)
            tell("MPS has ended: from now on tasks take turns, and run without it")
            child.terminate()
            child.wait()
            child = subprocess.Popen(command, pass_fds=kept)


def leave(socket: Path) -> None:
    """No more programs are led there."""
    with contextlib.suppress(OSError):
        (folder(socket) / "share").unlink()


def stop(socket: Path, environ: Mapping[str, str] = os.environ) -> None:
    """It ends when its last program has."""
    leave(socket)
    if lives(socket):
        with contextlib.suppress(ToolchainError):
            _control(folder(socket), (), environ, b"quit\n")


def environment(socket: Path, priority: int) -> dict[str, str]:
    """What leads a program of this priority to the daemon's MPS; nothing where there is none."""
    try:
        share = int((folder(socket) / "share").read_text())
    except (OSError, ValueError):
        return {}
    if not lives(socket):
        return {}
    found = _places(folder(socket))
    if priority < HIGHEST:
        found |= {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(share), "CUDA_MPS_CLIENT_PRIORITY": "1"}
    return found


def _places(place: Path) -> dict[str, str]:
    return {"CUDA_MPS_PIPE_DIRECTORY": str(place), "CUDA_MPS_LOG_DIRECTORY": str(place / "log")}


def _control(place: Path, words: tuple[str, ...], environ: Mapping[str, str], said: bytes = b"") -> Finished:
    own = {name: value for name, value in environ.items() if name != "CUDA_VISIBLE_DEVICES"}  # programs choose theirs
    return run((_CONTROL, *words), timeout=_PATIENCE, env=own | _places(place), input=said)
