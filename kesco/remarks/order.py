"""What the author is told of statements that are issued in another order.

In: the file, and what was made of its functions. Out: diagnostics. Apart from the other remarks because its places are
those of the author's text already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.flow import Region
from kesco.ir.issue import Reordered
from kesco.ir.pieces import pieces
from kesco.source import Span

_HELP = "what is needed first goes first; '--order keep' keeps the order of the text"
_REFUSED_HELP = "the output is right all the same; please report it: there may be a mistake in kesco"
_MOST = 4


class _Result(Protocol):
    @property
    def serial(self) -> Region:
        """The function as its author wrote it."""

    @property
    def reordered(self) -> Sequence[Reordered]:
        """The statements that change places."""


def said_of_order(path: str, text: bytes, functions: Sequence[_Result]) -> tuple[Diagnostic, ...]:
    """Which statements of each function moved (K219)."""
    found = []
    for one in functions:
        count = sum(change.moved for change in one.reordered)
        if count:
            many = f"{count} statements are" if count > 1 else "one statement is"
            message = f"'{one.serial.function}': {many} issued at another place than in the text"
            notes = tuple(_notes(path, text, one.reordered))[:_MOST]
            found.append(Diagnostic("K219", Severity.REMARK, message, one.serial.span, notes, _HELP))
    return tuple(found)


def said_of_refused(functions: Sequence[Region]) -> tuple[Diagnostic, ...]:
    """In which functions the proof did not follow a better order, so that they keep their own (K221)."""
    found = dict.fromkeys((one.function, one.span) for one in functions)
    why = "the order of the text is kept: the proof does not follow the one that is better"
    return tuple(
        Diagnostic("K221", Severity.REMARK, f"'{name}': {why}", span, help=_REFUSED_HELP) for name, span in found
    )


def said_of_plainer(functions: Collection[tuple[str, Span]]) -> tuple[Diagnostic, ...]:
    """In which functions the proof did not follow the plan, so that they have a plainer one (K221)."""
    why = "a plainer plan is used: the proof does not follow the one that is better"
    return tuple(
        Diagnostic("K221", Severity.REMARK, f"'{name}': {why}" if name else why, span, help=_REFUSED_HELP)
        for name, span in sorted(functions, key=lambda one: one[1].start)
    )


def _notes(path: str, text: bytes, changes: Sequence[Reordered]) -> Iterator[Note]:
    for change in changes:
        for (start, end), why in zip(change.pieces, change.why, strict=True):
            if why:
                begin = end - len(_code(text[start:end]))
                yield Note(why, pieces(path, text).span(begin, end))


def _code(piece: bytes) -> bytes:
    """A piece without the comments above its statement, and without its indentation."""
    while (rest := piece.lstrip()).startswith(b"//"):
        piece = rest.partition(b"\n")[2]
    return rest
