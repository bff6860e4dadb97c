"""Which GPU is meant, and at which socket its daemon is reached.

In: what a user calls a GPU, whose daemon, and the environment. Out: the GPU's one name, and paths. A module of its own
because whoever asks a daemon, and whoever is one, must come to the same names.

1. A GPU has one name, whatever it is called: the UUID that the driver says. Only where there is no ``nvidia-smi`` to
   ask, it is called as it was written. What means no GPU or several is refused (K104).
2. A daemon's own socket is in ``$XDG_RUNTIME_DIR/kesco``, or else in a folder of ``/tmp`` that belongs to the user
   alone. The one for listed users is always in that folder of ``/tmp``, which others can then search and not read.
3. A folder that somebody else owns or may write to is refused (K543). There is nothing else to connect to: no port.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.toolchain.process import run

NO_FOLDER = "K543"
PUBLIC = Path("/tmp")
"""Where all users find each other's folders."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_LISTED = re.compile(r"(?:GPU\s+(\d+):.*)?\(UUID:\s*([^\s)]+)\)")


def gpu_name(wanted: str, environ: Mapping[str, str] = os.environ) -> str:
    """The UUID of a GPU given by number, UUID or the beginning of one; as written where there is nobody to ask.

    Without a wish it is the first of ``CUDA_VISIBLE_DEVICES``, or GPU 0.
    """
    asked = wanted.strip() or environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    written = re.sub(r"^(gpu|mig)-.*", lambda m: m[1].upper() + m[0][3:].lower(), asked, flags=re.IGNORECASE)
    if re.fullmatch(rf"(GPU|MIG)-{_UUID}", written):
        return written
    number = str(int(asked)) if asked.isascii() and asked.isdigit() else ""
    if known := _known(environ):
        found = [name for place, name in known if (place == number if number else name.lower() == asked.lower())]
        found = found or [name for _, name in known if not number and name.lower().startswith(asked.lower())]
        if len(found) != 1:
            what = f"'{asked}' may be {' or '.join(found)}" if found else f"there is no GPU '{asked}'"
            help_ = "nvidia-smi names " + ", ".join(f"{place} {name}".strip() for place, name in known)
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help=help_))
        written = found[0]
    elif number:
        written = f"gpu{number}"
    return re.sub(r"[^\w-]", "_", written)


def _known(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Number, of no MIG instance, and UUID of all that nvidia-smi names; none where it does not answer."""
    if not shutil.which("nvidia-smi", path=environ.get("PATH")):
        return []
    asked = run(("nvidia-smi", "-L"), timeout=20, env=environ)
    return [(found[1] or "", found[2]) for found in _LISTED.finditer(asked.text)] if asked.returncode == 0 else []


def socket_path(gpu: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The socket of this user's daemon; its folder is there afterwards, for this user alone (K543 if it cannot be)."""
    base = environ.get("XDG_RUNTIME_DIR", "")
    help_ = "set XDG_RUNTIME_DIR to a folder of your own"
    return _own_folder(Path(base) / "kesco" if base else _folder_of(os.getuid()), help_) / f"fikit-{gpu}.sock"


def shared_path(gpu: str) -> Path:
    """The socket at which this user's daemon lets others in; its folder is there afterwards, and can be searched."""
    folder = _own_folder(_folder_of(os.getuid()), "have it removed, or serve without --user")
    folder.chmod(0o711)
    return folder / f"shared-{gpu}.sock"


def reached(gpu: str, owner: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The socket of this user's daemon, or of the `owner`'s, a name or number, where one is named."""
    if not owner:
        return socket_path(gpu, environ)
    user = _user(owner)
    folder = _folder_of(user)
    if why := _why_not(folder, user):
        raise _no_folder(folder, why, f"that user starts: kesco fikit serve --user {os.getuid()}:PRIORITY")
    return folder / f"shared-{gpu}.sock"


def _folder_of(user: int) -> Path:
    return PUBLIC / f"kesco-{user}"


def _user(name: str) -> int:
    if name.isascii() and name.isdigit():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        what = f"there is no user '{name}'"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="name one that 'id' knows")) from None


def _own_folder(folder: Path, help_: str) -> Path:
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    if why := _why_not(folder, os.getuid()):
        raise _no_folder(folder, why, help_)
    return folder


def _why_not(folder: Path, owner: int) -> str:
    """Why this cannot be the owner's folder of sockets, or an empty text."""
    try:
        found = folder.lstat()
    except OSError as error:
        return error.strerror or str(error)
    safe = stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o022
    return "" if safe else "it is not a folder that its user alone may write"


def _no_folder(folder: Path, why: str, help_: str) -> UsageError:
    what = f"{folder} is no safe place for a socket: {why}"
    return UsageError(Diagnostic(NO_FOLDER, Severity.ERROR, what, help=help_))
