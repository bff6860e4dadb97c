"""What a copy to the host may still be writing is not touched before the wait: ``destination_problems(program)``.

In: the concurrent program as read from its text. Out: what speaks against its copies by ``kesco_fetch``, in words, each
with its place. The counterpart of `sources`, whose way back through the statements it goes, with other rules.

1. To read memory is refused as well as to change it: only variables that are too small to be a destination may be used,
and addresses computed. A copy from the host by a call that is not kesco's reads, too, and so may what is printed.
2. The wait has to do with an error what the copy's own statement does: it is the same text but for the call, bare or as
the argument of one macro or function of one meaning, beside string literals. 3. Nothing in between may wait for all
copies and keep the error to itself. An element that is a ``vector`` or ``string`` is no destination, though what it
holds may be one. 4. A copy that cannot be found in a function that is read here is refused. 5. If all copies of a form
go to numbers that a ``vector`` has from ``new``, no object with pointers or objects in it is there: its members may be
read.
"""

from __future__ import annotations

import re

from kesco.ir import program as ir
from kesco.ir.alike import is_quiet, statement_of
from kesco.ir.transfers import FETCH, FETCHED, LATER, TO_HOST
from kesco.source import Span
from kesco.verify.called import LATERS, Called, form_of
from kesco.verify.looks import Looks, is_of_numbers
from kesco.verify.sources import Ahead, Problem, later_in, way_of, word_of

_CALLED = re.compile(rb"(?<!cudaError_t )\bkesco_fetch\s*\(")
_TOO_LATE = f"the host may look at what this copies, or change it, before '{FETCHED}' in a statement like its own"


def destination_problems(program: ir.Program) -> tuple[Problem, ...]:
    """All that speaks against the copies to the host that are not waited for at once."""
    text = program.text
    if not (_CALLED.search(text) or LATERS.search(text)):
        return ()
    found: list[Problem] = []
    seen: set[Span] = set()
    called = Called(program)
    for function in program.functions:
        fetches = [n for n in ir.walk(function.body) if isinstance(n, ir.Call) and word_of(n) == FETCH]
        calls = {n.span: called.form(function, n) for n in later_in(function)}
        if not fetches and not calls:
            continue
        if any(isinstance(n, ir.Obstacle) for n in ir.walk(function.body)):
            found += [(span, "the statements behind it cannot be followed") for span in (*calls, *_spans(fetches))]
        forms: dict[bytes, set[Span]] = {}
        for span, form in (*calls.items(), *((n.span, form_of(program, function, n)) for n in fetches)):
            forms.setdefault(form, set()).add(span)
        numbers = {n.span: called.is_to_numbers(n) for n in later_in(function)}
        numbers |= {n.span: is_of_numbers(n.arguments[0]) for n in fetches}
        known = {(n.span, n.key): bool(calls[n.span]) for n in later_in(function)}
        within = {n.span: called.copies(n) for n in later_in(function)}
        within |= {n.span: [(function, n)] for n in fetches}
        for form, spans in forms.items():
            seen |= spans
            held = [(statement_of(program, f, n), n) for span in spans for f, n in within[span]]
            copies = [(statement, n) for statement, n in held if statement is not None]
            if len(copies) < len(held) or not all(is_quiet(program, *one) for one in copies):
                form = b""
            members = all(numbers[span] for span in spans)
            reader = Looks(program, form, spans, function.method_of, members=members, later=known, copies=copies)
            reader.before(function.body, Ahead(True, True, True))
            late = spans if not form else (spans - reader.seen) | reader.late
            late |= {one.span for one in fetches if one.span in spans and way_of(one) != TO_HOST}
            found += [(span, _TOO_LATE) for span in sorted(late)]
    where = Span(program.path, 0, 1, 1, 1)
    if not found and len(seen) != len(_CALLED.findall(text)) + len(LATERS.findall(text)):
        found.append((where, f"a '{FETCH}' or '{LATER}' stands where it cannot be read"))
    if b"thread_local" in text:
        found.append((where, f"'{FETCH}' in a file with objects of a thread's own"))
    return tuple(found)


def _spans(calls: list[ir.Call]) -> list[Span]:
    return [one.span for one in calls]
