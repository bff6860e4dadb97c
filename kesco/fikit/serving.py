"""What a daemon says of itself, how a task is called, and with which environment it runs.

In: a socket's path (`places`), a command, the environment. Out: the daemon's state, a task's key, and the environment
with which a program runs under FIKIT. What answers at a socket may be anything: only what has the form of a daemon's
state comes out (K542), and nobody is listened to for long.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError, UsageError

NO_DAEMON = "K542"
NO_PROGRAM = "K544"
_MAGIC, _VERSION, _STATUS = 0x4B464B54, 6, 2  # kesco/runtime/fikit/protocol.h
_VARIABLES = {
    "SOCKET": "KESCO_FIKIT_SOCKET",
    "PRIORITY": "KESCO_FIKIT_PRIORITY",
    "DEADLINE_MS": "KESCO_FIKIT_DEADLINE_MS",
    "SPIN_US": "KESCO_FIKIT_SPIN_US",
    "TASK": "KESCO_FIKIT_TASK",
    "MEASURE": "KESCO_FIKIT_MEASURE",
}
_HELLO, _WELCOME = struct.Struct("IIIi40s64s"), struct.Struct("IIIi")
_REFUSALS = {
    1: "it is of another version",
    2: "this user has no place left",
    3: "this user is not listed",
    4: "no memory",
}
_PATIENCE, _MOST = 5.0, 1 << 24  # seconds, bytes
_TEXTS = ("name", "task", "waits_for")
_NUMBERS = (
    *("pid", "user", "priority", "number", "uptime_ns", "waiting", "held_reason", "launched", "done", "passed"),
    *("holds", "abandoned", "waited_ns", "longest_ns", "filled_ns", "overruns", "gaps", "gap_ns", "wide_gaps"),
    *("wide_ns", "promises", "broken", "harms", "harm_ns", "drifted", "unknown", "credited", "fillable_ns", "busy_ns"),
    *("beside", "trials", "beside_ns", "slow_permille"),
    "lost_records",
)
_GRANTS = 6


def status(path: Path) -> dict[str, Any]:
    """What the daemon behind a socket says of itself; `ToolchainError` (K542) if there is none."""
    try:
        said = _asked(path)
        found = json.loads(said)
    except OSError as error:
        raise _no_daemon(f"no daemon answers at {path}: {error}", "start it: kesco fikit serve") from None
    except (ValueError, RecursionError):
        raise _no_daemon(*_no_status(path, said)) from None
    if not _is_status(found):
        raise _no_daemon(*_no_status(path, b""))
    return dict(found)


def _asked(path: Path) -> bytes:
    end, said = time.monotonic() + _PATIENCE, b""
    with socket.socket(socket.AF_UNIX) as link:
        patient(link, _PATIENCE)
        link.connect(str(path))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it refuses before it is asked
            link.sendall(_HELLO.pack(_MAGIC, _VERSION, _STATUS, 0, b"", b""))
        while part := _received(link):
            said += part
            if time.monotonic() > end or len(said) > _MOST:
                raise TimeoutError("it does not come to an end")
    return said


def patient(link: socket.socket, seconds: float) -> None:
    """Nothing takes longer. To connect waits as well, which with Python's own timeout it does not where many come."""
    for one in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        link.setsockopt(socket.SOL_SOCKET, one, struct.pack("ll", int(seconds), int(seconds % 1 * 1e6)))


def _received(link: socket.socket) -> bytes:
    try:
        return link.recv(65536)
    except ConnectionResetError:  # closed with our question unread
        return b""


def _no_status(path: Path, said: bytes) -> tuple[str, str]:
    if len(said) == _WELCOME.size and _WELCOME.unpack(said)[0] == _MAGIC:
        why = _REFUSALS.get(_WELCOME.unpack(said)[2], "no reason is given")
        return (
            f"the daemon at {path} refuses: {why}",
            "ask for 'kesco fikit serve --user UID:PRIORITY', or start it anew",
        )
    return f"what answers at {path} is no daemon of kesco's, or it was cut off", "start it anew: kesco fikit serve"


def _no_daemon(what: str, help_: str) -> ToolchainError:
    return ToolchainError(Diagnostic(NO_DAEMON, Severity.ERROR, what, help=help_))


def _is_status(found: Any) -> bool:
    """Whether it has what its readers look at (kesco/runtime/fikit/status.cpp)."""
    form = {"tasks": list, "holder": int}
    return _has(found, form) and all(
        _has(task, dict.fromkeys(_NUMBERS, int) | dict.fromkeys(_TEXTS, str) | {"grants": list, "last_grant": dict})
        and len(task["grants"]) >= _GRANTS
        and all(type(one) is int for one in task["grants"])
        and _has(task["last_grant"], {"kernel": str, "predicted_ns": int, "gap_left_ns": int})
        for task in found["tasks"]
    )


def _has(found: Any, form: Mapping[str, type]) -> bool:
    return isinstance(found, dict) and all(type(found.get(name)) is kind for name, kind in form.items())


def executable(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The program that a command's first word means; `UsageError` (K544) if there is none."""
    found = shutil.which(name, path=environ.get("PATH"))
    if found is None:
        raise UsageError(Diagnostic(NO_PROGRAM, Severity.ERROR, f"there is no program '{name}'"))
    return Path(found)


def task_key(command: Sequence[str], environ: Mapping[str, str] = os.environ) -> str:
    """What a profile knows a task by: 16 hex digits over the executable's bytes and the arguments as they are given."""
    digest = hashlib.sha256(executable(command[0], environ).read_bytes())
    for word in command[1:]:
        digest.update(b"\0" + word.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def plain(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a program that is no task, also where who starts it is one."""
    return {name: value for name, value in environ.items() if name not in _VARIABLES.values()}


def environment(library: Path, settings: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a program that runs under FIKIT; the names of `settings` are keys of the table above."""
    preload = " ".join(filter(None, (str(library), environ.get("LD_PRELOAD", ""))))
    return plain(environ) | {"LD_PRELOAD": preload} | {_VARIABLES[name]: value for name, value in settings.items()}
