"""Programs that run for a build: started, waited for, ended with this one, and their results put in place when whole.

In: a command and where its words go. Out: its exit status. A signal that this process gets reaches them; afterwards it
dies of the same one, as a compiler would. Nothing here reads what they say, except that it may be kept back until it is
known whether it counts.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence

from kesco.wrapper.files import forget, temporary_folder

TYPE_CHECKING = False  # typing takes as long to import as the rest of this
if TYPE_CHECKING:
    from typing import Any

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_LONGEST = 255 - len(".kesco-4194304") - 1  # a name aside must be a name, too
_PATIENCE = 2.0
"""Seconds that a program has to end by itself."""


class Child:
    """A program that was started; with `apart` it leads a group of its own, and all that it started ends with it."""

    def __init__(
        self, path: str, words: Sequence[str], environ: Mapping[str, str], kept: str = "", apart: bool = False
    ) -> None:
        """Start it; `kept` is the beginning of the names of two files for what it says, empty to let it say it."""
        self.kept, self.apart = kept, apart
        self.status: int | None = None
        actions: list[tuple[object, ...]] = []
        new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        for number, name in ((1, "out"), (2, "err")) if kept else ():
            actions.append((os.POSIX_SPAWN_OPEN, number, f"{kept}.{name}", new, 0o600))
        given: dict[str, Any] = {"file_actions": actions, "setsigdef": _FORWARDED}
        if apart:
            given["setpgroup"] = 0
        self.pid = os.posix_spawn(path, list(words), dict(environ), **given)
        self.handle = os.pidfd_open(self.pid)

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it ended within this time."""
        poll = select.poll()
        poll.register(self.handle, select.POLLIN)
        if self.status is None and poll.poll(None if seconds is None else seconds * 1000):
            self.status = os.waitpid(self.pid, 0)[1]
            os.close(self.handle)
        return self.status is not None

    def signal(self, number: int) -> None:
        """Send it a signal, and all that it started if it stands apart."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            (os.killpg if self.apart else os.kill)(self.pid, number)

    def end(self) -> None:
        """End it, and remove what nvcc leaves lying when it is ended."""
        if self.status is None:
            self.signal(signal.SIGTERM)
            if not self.wait(_PATIENCE):
                self.signal(signal.SIGKILL)
                self.wait()
        if self.apart:
            self.signal(signal.SIGKILL)  # whoever of them is left
        begin = f"tmpxft_{self.pid:08x}_"
        with contextlib.suppress(OSError):
            for name in os.listdir(temporary_folder()):
                if name.startswith(begin):
                    forget(os.path.join(temporary_folder(), name))

    def say(self) -> None:
        """Say what was kept."""
        for name, stream in (("out", 1), ("err", 2)):
            with contextlib.suppress(OSError), open(f"{self.kept}.{name}", "rb") as file:
                while data := file.read(1 << 20):
                    view = memoryview(data)
                    while view:
                        view = view[os.write(stream, view) :]

    def last_line(self) -> str:
        """The last line that was kept of its messages."""
        with contextlib.suppress(OSError), open(f"{self.kept}.err", "rb") as file:
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
            return lines[-1] if lines else f"status {self.status}"
        return f"status {self.status}"

    @property
    def ok(self) -> bool:
        """Whether it ended with success."""
        return self.status == 0


class Signals:
    """While this is entered, signals are passed on to the children that are listed, and taken note of."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.got = 0
        self._before: list[tuple[int, object]] = []

    def __enter__(self) -> Signals:
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        """Signals stay as they are: this process ends soon."""

    def _take(self, number: int, _frame: object) -> None:
        self.got = self.got or number
        for child in self.children:
            if child.status is None:
                child.signal(number)


def end_as(status: int, got: int) -> int:
    """The exit code for a child's status; dies of the signal if this process got one or the child died of one."""
    number = got or (os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)
    if number:
        sys.stdout.flush()
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        time.sleep(1)
        return 128 + number
    return os.WEXITSTATUS(status)


class Results:
    """The files that a command writes, under names of their own until they are whole."""

    def __init__(self, arguments: Sequence[str], places: Sequence[tuple[int, str, str]], added: Sequence[str]) -> None:
        """`places` are a word's number, what precedes the name in it, and the name; `added` are words more."""
        self.arguments = [*arguments, *added]
        self.pairs: list[tuple[str, str]] = []
        for place, before, name in places:
            if not _replaceable(name):
                continue
            folder, base = os.path.split(name)
            root, ending = os.path.splitext(base)
            aside = os.path.join(folder, f".{root}.kesco-{os.getpid()}{ending}")
            self.arguments[place] = before + aside
            self.pairs.append((aside, name))
        self._sweep()

    def put(self) -> None:
        """Give the files their names; what was not written is not touched."""
        for aside, name in reversed(self.pairs):  # the object last: make looks at its time
            if os.path.lexists(aside):
                os.replace(aside, name)

    def drop(self) -> None:
        """Remove them."""
        for aside, _ in self.pairs:
            forget(aside)

    def _sweep(self) -> None:
        """Remove what runs left that were killed."""
        for _, name in self.pairs:
            folder, base = os.path.split(name)
            root, ending = os.path.splitext(base)
            begin = f".{root}.kesco-"
            with contextlib.suppress(OSError):
                for found in os.listdir(folder or "."):
                    if found.startswith(begin) and found.endswith(ending):
                        pid = found[len(begin) : len(found) - len(ending)]
                        if pid.isdigit() and int(pid) != os.getpid() and not os.path.exists(f"/proc/{pid}"):
                            forget(os.path.join(folder, found))


def _replaceable(name: str) -> bool:
    """Whether a result can be written aside: its name is none of a device or link, not too long, in a folder."""
    if os.path.islink(name) or (os.path.exists(name) and not os.path.isfile(name)):
        return False
    return len(os.fsencode(os.path.basename(name))) <= _LONGEST and os.access(os.path.dirname(name) or ".", os.W_OK)
