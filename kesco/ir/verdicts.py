"""What became of the concurrency of a function, or of a loop: found, lost, none there, or not known."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kesco.diagnostics import Diagnostic
from kesco.source import Span


class Word(enum.Enum):
    """The verdict in a word."""

    CONCURRENT = "concurrent"
    CHAIN = "a chain"
    LOST = "lost"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a function that launches, or a loop around launches; `span` is its place.

    `why` is the chain, what is lost, or why it is not known; empty for what is concurrent. `lost` says of a function
    what is independent, what is in the way, and what helps. `reason` is why the function stays serial, if the verdict
    says that, and `help` what to do about it.
    """

    word: Word
    span: Span
    why: str = ""
    reason: str = ""
    help: str = ""
    loops: tuple[Verdict, ...] = ()
    lost: tuple[Diagnostic, ...] = ()

    @property
    def text(self) -> str:
        """The verdict in words."""
        return f"{self.word.value}: {self.why}" if self.why else self.word.value
