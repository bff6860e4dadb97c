"""Device memory that is allocated later and freed earlier than the program says."""

from __future__ import annotations

from dataclasses import dataclass

from kesco.source import Span


@dataclass(frozen=True, slots=True)
class Moved:
    """One allocation whose life is cut to its uses.

    `function` is where it all stands, `pointer` the variable that holds it. `allocates` and `frees` are the calls in
    the text, `allocation` and `release` the statements around them, with their semicolons. The memory is needed from
    the statement that begins at the offset `first` to the one before that at `behind`. `size` is the expression for
    its bytes, as written, and `bytes` its value where it is a constant, else None.
    """

    function: Span
    pointer: str
    allocates: Span
    allocation: Span
    frees: Span
    release: Span
    first: int
    behind: int
    size: str
    bytes: int | None


ALLOCATE, FREE, FREED = "kesco_malloc", "kesco_free", "kesco_freed"
"""What the prologue calls them: take memory, give it back, and what stands where the serial program freed it."""
