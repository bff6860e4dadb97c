"""Where the daemon of a GPU is, what it says of itself, and how a task is called.

In: the environment and a GPU's name. Out: a socket's path, the daemon's state, a task's key, and the environment with
which a program runs under FIKIT. The socket is in ``$XDG_RUNTIME_DIR/kesco``, or else in a folder of ``/tmp`` that
belongs to the user alone. There is nothing else to connect to: no port, no file that others may write.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import stat
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError, UsageError
from kesco.toolchain.process import run

NO_DAEMON = "K542"
NO_FOLDER = "K543"
NO_PROGRAM = "K544"
_MAGIC, _VERSION, _STATUS = 0x4B464B54, 5, 2  # kesco/runtime/fikit/protocol.h
_VARIABLES = {
    "SOCKET": "KESCO_FIKIT_SOCKET",
    "PRIORITY": "KESCO_FIKIT_PRIORITY",
    "DEADLINE_MS": "KESCO_FIKIT_DEADLINE_MS",
    "SPIN_US": "KESCO_FIKIT_SPIN_US",
    "TASK": "KESCO_FIKIT_TASK",
    "MEASURE": "KESCO_FIKIT_MEASURE",
}
_HELLO = struct.Struct("IIIi40s64s")


def gpu_name(wanted: str, environ: Mapping[str, str] = os.environ) -> str:
    """The UUID of a GPU given by number or UUID; what was given where there is no nvidia-smi to ask.

    Without a wish it is the first of ``CUDA_VISIBLE_DEVICES``, or GPU 0.
    """
    asked = wanted or environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    if asked.isdigit() and shutil.which("nvidia-smi", path=environ.get("PATH")):
        found = run(("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", "-i", asked), timeout=20)
        if found.returncode == 0 and found.text.startswith("GPU-"):
            return found.text.split()[0]
    return re.sub(r"[^\w-]", "_", f"gpu{asked}" if asked.isdigit() else asked)


def socket_path(gpu: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The socket of a GPU's daemon; its folder is there afterwards, for this user alone (K543 if it cannot be)."""
    base = environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(base) / "kesco" if base else Path(f"/tmp/kesco-{os.getuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise _no_folder(folder, error.strerror or str(error)) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise _no_folder(folder, "it is not a folder that this user alone may write")
    return folder / f"fikit-{gpu}.sock"


def _no_folder(folder: Path, why: str) -> UsageError:
    what = f"there is no safe place for the socket: {folder}: {why}"
    return UsageError(Diagnostic(NO_FOLDER, Severity.ERROR, what, help="set XDG_RUNTIME_DIR to a folder of your own"))


def status(path: Path) -> dict[str, Any]:
    """What the daemon behind a socket says of itself; `ToolchainError` (K542) if there is none."""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(5)
            link.connect(str(path))
            link.sendall(_HELLO.pack(_MAGIC, _VERSION, _STATUS, 0, b"", b""))
            parts = []
            while part := link.recv(65536):
                parts.append(part)
        found = json.loads(b"".join(parts))
    except (OSError, ValueError) as error:
        what = f"no daemon answers at {path}: {error}"
        raise ToolchainError(Diagnostic(NO_DAEMON, Severity.ERROR, what, help="start it: kesco fikit serve")) from None
    if not isinstance(found, dict):
        raise ToolchainError(Diagnostic(NO_DAEMON, Severity.ERROR, f"what answers at {path} is no daemon of kesco's"))
    return found


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


def environment(library: Path, settings: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a program that runs under FIKIT; the names of `settings` are keys of the table above."""
    preload = " ".join(filter(None, (str(library), environ.get("LD_PRELOAD", ""))))
    cleaned = {name: value for name, value in environ.items() if name not in _VARIABLES.values()}
    return cleaned | {"LD_PRELOAD": preload} | {_VARIABLES[name]: value for name, value in settings.items()}
