"""What the author is told of statements that are issued in another order, or run later.

In: the file, and what was made of its functions. Out: diagnostics. Apart from the other remarks because its places are
those of the author's text already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.compilation import FunctionResult
from kesco.ir.deferred import Deferred
from kesco.ir.flow import Region
from kesco.ir.issue import Reordered
from kesco.ir.pieces import pieces
from kesco.ir.verdicts import Word
from kesco.remarks.verdicts import HELD
from kesco.source import Span

_HELP = "what is needed first goes first; '--order keep' keeps the order of the text"
_REFUSED_HELP = "the output is right all the same; please report it: there may be a mistake in kesco"
_DEFERRED_HELP = "'--syncs keep' runs it in its own turn, and so does KESCO_DEFERRED=off in the environment"
_USES = "what uses the results of a turn runs while the device works on the next one"
_WAITS = "the host waits for the results of a turn when it has done its own work for the next one"
_NOT_KEPT = "what uses the results cannot be kept until the next turn has launched"
_NOWHERE = Span("", 0, 0, 0, 0)
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


def said_of_deferred(path: str, text: bytes, loops: Sequence[Deferred]) -> tuple[Diagnostic, ...]:
    """In which loops the host uses the results of a turn when the next one has launched (K224)."""
    places, found = pieces(path, text), list[Diagnostic]()
    for one in loops:
        begin, end = one.turn.part
        due = one.turn.statements[one.due]
        what = _WAITS if one.turn.early else _USES
        message = f"'{one.turn.function}': {what}"
        notes = (Note("in the next turn it runs ahead of this", places.span(due.start, due.end)),)
        found.append(Diagnostic("K224", Severity.REMARK, message, places.span(begin, end), notes, _DEFERRED_HELP))
    return tuple(found)


def with_deferred(
    found: Iterable[Diagnostic],
    functions: Sequence[FunctionResult],
    loops: Sequence[Deferred],
    others: Sequence[tuple[str, Span]],
) -> tuple[tuple[Diagnostic, ...], tuple[FunctionResult, ...]]:
    """What is said, and the verdicts, where the host works beside the device: of what held it nothing is lost.

    `others` are the reasons, with their places, why it does not in other loops.
    """

    def judged(one: FunctionResult) -> FunctionResult:
        mine = {each.turn.whole for each in loops if _is_in(one.region.span, each.turn.whole)}
        if one.verdict is None or not mine:
            return one
        within = tuple(replace(v, word=Word.CONCURRENT, why="") if v.span in mine else v for v in one.verdict.loops)
        return replace(one, verdict=replace(one.verdict, word=Word.CONCURRENT, why="", reason="", loops=within))

    spans = {(one.region.span.start, one.region.span.end): one.region.span for one in functions}
    held = {one.region.span: judged(one) is not one for one in functions if HELD in one.left_because}

    def told(one: Diagnostic) -> Diagnostic:
        if one.code != "K204" or one.span is None:
            return one
        function = spans.get((one.span.start, one.span.end))  # else it is said of the file
        mine = [pair for pair in others if function is None or _is_in(function, pair[1])][:_MOST]
        return replace(one, notes=(*one.notes, *(Note(f"{_NOT_KEPT}: {why}", place) for why, place in mine)))

    kept = tuple(told(each) for each in found if each.code != "K204" or not held.get(each.span or _NOWHERE))
    return kept, tuple(map(judged, functions))


def _is_in(function: Span, loop: Span) -> bool:
    return function.start <= loop.start and loop.end <= function.end


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
