"""What a function that gives the device work does, as whoever calls it sees it."""

from __future__ import annotations

from dataclasses import dataclass

from kesco.ir.access import Access
from kesco.source import Span


@dataclass(frozen=True, slots=True)
class Summary:
    """One function.

    `accesses` are in terms of its parameters, of ``this``, of globals, and of what it allocates; `by_host` those of its
    host code. `barriers` are the sites at which it joins, waits or stays on the default stream. `looks` tells that its
    host code may see how far the device is. `width` is how many of its operations can run at once. `not_followed` says
    why it does not follow the stream of its caller, or is empty.
    """

    function: str
    span: Span
    accesses: tuple[Access, ...]
    by_host: tuple[Access, ...]
    barriers: tuple[str, ...]
    looks: bool
    width: int
    not_followed: str

    def lines(self) -> tuple[str, ...]:
        """It in words."""
        how = f"does not follow its caller: {self.not_followed}" if self.not_followed else "may follow its caller"
        found = [f"{self.function} at {self.span.line}:{self.span.column}: width {self.width}, {how}"]
        for whose, accesses in (("", self.accesses), ("the host ", self.by_host)):
            found += [f"  {whose}{one.mode.text} {one.buffer.name}" for one in accesses]
        found += [f"  barrier {one}" for one in self.barriers]
        return (*found, *(["  the host may see how far the device is"] if self.looks else []))
