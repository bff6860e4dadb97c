"""Memory that every call of a function fills anew, so that each stream may have its own."""

from __future__ import annotations

from dataclasses import dataclass

OWN, OWNED = "kesco_own", "kesco_owned"
"""What the prologue calls it: where a call first writes to it, and where that is used."""
EACH = "of which each stream has its own"
"""The `Access.why` of such memory at a call, which needs of it what it held before the streams had any."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """A pointer to such memory that a launch, copy or memset is given: the operation, and its text's range.

    `values` are the texts of what decides which bytes a call first writes there, and None for what comes behind that.
    `buffers` are the keys of what it may point to.
    """

    operation: int
    start: int
    end: int
    values: tuple[str, ...] | None
    buffers: frozenset[str]


def allocation(key: str) -> str:
    """The key of an allocation, whichever call of a function it was seen in."""
    return key.partition("@")[0]
