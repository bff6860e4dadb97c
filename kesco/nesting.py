"""Room for deeply nested programs: work is done on a thread whose stack is large enough.

In: work, and the file it is about. Out: its result. What is nested deeper than even that gets a diagnostic.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.source import Span

_Result = TypeVar("_Result")
_STACK, _FRAMES = 1 << 29, 120_000  # what the deepest program that the front-end takes needs, and some more


def deep(path: str, work: Callable[[], _Result]) -> _Result:
    """Do the work where deeply nested programs fit; raises `InputError` for one that is nested deeper than that."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    stack, frames = threading.stack_size(_STACK), sys.getrecursionlimit()
    sys.setrecursionlimit(max(frames, _FRAMES))
    try:
        worker = threading.Thread(target=run, daemon=True)
        try:
            worker.start()
        except RuntimeError:  # not that much memory is to be had: the usual stack must do
            sys.setrecursionlimit(frames)
            run()
        else:
            threading.stack_size(stack)
            worker.join()
    finally:
        threading.stack_size(stack)
        sys.setrecursionlimit(frames)
    if errors and isinstance(errors[0], RecursionError):
        what, where = "an expression or statement is nested too deeply", Span(path, 0, 1, 1, 1)
        split = "split the file's longest expression or chain of 'else if'; nothing was written"
        raise InputError(Diagnostic("K106", Severity.ERROR, what, where, help=split)) from None
    if errors:
        raise errors[0]
    return results[0]
