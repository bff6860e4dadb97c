"""Prefetches that are put into a program, and copies on streams."""

from __future__ import annotations

from dataclasses import dataclass

from kesco.source import Span

COPY = "kesco_copy"
"""``cudaMemcpy`` on a stream, whose host goes on when its own memory is done with."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Pages of managed memory move to the device before the statement at `statement`.

    `operation` is the number of its sites, behind those of the text. `pointer` is the expression for the beginning of
    the allocation. `reader` names the first kernel that reads it, and `before` is that kernel's operation where the
    prefetch stands right before it, -1 where it stands before a loop around it.
    """

    operation: int
    pointer: str
    reader: str
    before: int
    statement: Span
