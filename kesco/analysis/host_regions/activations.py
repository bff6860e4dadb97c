"""A function of the text in one way that led there, and where control is in it.

In: nothing. Out: the records that `watching` fills in, and that others read. Apart from that walk since those who
read them have nothing to do with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kesco.analysis.region import RegionBuilder
from kesco.ir import program as ir
from kesco.ir.flow import Handle
from kesco.llvm.values import Instruction
from kesco.source import Span

Trips = tuple[tuple[int, int], ...]
"""The counted loops around a call, in all functions around, and the trip of each."""


@dataclass(slots=True)
class Activation:
    """One function of the text, in one way that led there."""

    function: ir.Function
    root: str
    generic: bool
    builder: RegionBuilder
    touches_device: bool = False
    foreign: bool = False
    lends: bool = False  # it works with handles that came in from code that is not seen
    device_changed: bool = False
    throws: bool = False
    exits: bool = False
    returns: bool = False  # and no exception ever leaves it
    serial: str = ""
    unseen_in: Span | None = None

    def stay_serial(self, why: str, span: Span) -> None:
        """The function is left as it is."""
        self.serial = self.serial or f"{why} (line {span.line})"


@dataclass(slots=True)
class Level:
    """A function that was entered: its activation, and the call in the text of its function that led to it.

    `call` is None as long as control is in that text itself.
    """

    activation: Activation
    function: str
    call: Instruction | None = None
    callee: str = ""
    before: frozenset[int] = frozenset()
    is_text: bool = False
    trips: Trips = ()
    setting: tuple[int, Handle | None] = (-1, None)  # a statement, and the stream that is set for its call
    lent: bool = False  # handles of libraries have streams of kesco's where it is called
