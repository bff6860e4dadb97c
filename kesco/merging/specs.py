"""What is to be merged: ``a.cu:main=3`` is the program `a.cu` with priority 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir.task import HIGHEST, LOWEST

BAD_TASK = "K120"
_SPEC = re.compile(r"(?P<path>.+?)(?::(?P<function>[A-Za-z_]\w*))?=(?P<priority>\d+)")


@dataclass(frozen=True, slots=True)
class Spec:
    """One program: its file, its priority (9 comes first), and a name that no other one has.

    A task of a program that is a merge itself has the program's priority, and its rank `inside` (0 comes first); the
    priority that it had there is `within`.
    """

    path: str
    priority: int
    name: str
    inside: int = 0
    within: str = ""

    @property
    def label(self) -> str:
        """Its priority in words."""
        return f"{self.priority}/{self.within}" if self.within else str(self.priority)

    @property
    def level(self) -> tuple[int, int]:
        """What its urgency goes by: less comes first."""
        return -self.priority, self.inside


def parse(words: Sequence[str]) -> tuple[Spec, ...]:
    """The programs in the order of the command line; raises `UsageError` (K120)."""
    if len(words) < 2:
        raise _bad("one program is no merge" if words else "nothing to merge")
    found: list[Spec] = []
    for word in words:
        match = _SPEC.fullmatch(word)
        if match is None or not LOWEST <= int(match["priority"]) <= HIGHEST:
            raise _bad(f"'{word}' is no program with a priority from {LOWEST} to {HIGHEST}")
        if match["function"] not in (None, "main"):
            raise _bad(f"'{word}': a task is a whole program, from 'main' on")
        found.append(Spec(match["path"], int(match["priority"]), _name(match["path"], {one.name for one in found})))
    return tuple(found)


def _name(path: str, taken: set[str]) -> str:
    """A name for a namespace; ASCII, since names of kernels are made of it, and PTX knows no other letters."""
    return unlike(re.sub(r"[^0-9A-Za-z_]", "_", Path(path).stem), taken)


def unlike(stem: str, taken: set[str]) -> str:
    """A name like this one that nobody has."""
    names = (stem, *(f"{stem}_{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def _bad(what: str) -> UsageError:
    return UsageError(Diagnostic(BAD_TASK, Severity.ERROR, what, help="write 'kesco merge a.cu=3 b.cu=2 -o both.cu'"))
