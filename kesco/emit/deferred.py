"""Loops in which what uses a turn's results is kept until the next turn has launched (`kesco.ir.deferred`).

In: a text that is ready, as a `Program`, and the loops. Out: the same with what uses results in lambdas; and, the other
way, a text without that, and what stands where (`Written`). It comes behind all else.

`without_deferred` takes genuine lines out again, each of the same length, so that everything else is read and proven as
if they were not there. What is not written exactly as here stays, and is then code like any other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import cache
from itertools import groupby

from kesco.emit.edits import Edit, line_indent, newline_of
from kesco.emit.names import changed, in_the_way, macros, section_between
from kesco.emit.places import CannotInsert, behind_statement, lines_before, prologue_place
from kesco.emit.prologue import deferred_text
from kesco.ir import program as ir
from kesco.ir.deferred import CLASS, KEEP, RUN, Deferred, Written

MARK = "// ---- kesco: what the host does later in this file"
LAST = "// ---- kesco: later end"
_BEGUN = "  // kesco: what uses the results of a turn is run when the next one has launched"
_DUE = "  // kesco: what the turn before has kept, while the device works"
_KEPT = "  // kesco: for the next turn"
_WAITED = "  // kesco: what the turn before waits for"
_WAIT = "  // kesco: when the next turn has done this much of the host's work"
_END = "});  // kesco: until here"
_DONE = "  // kesco: what the last turn has kept"
_OURS = re.compile(rb"\bkesco_deferred\w*|\bKescoDeferred\b")
_LINE = re.compile(
    rb"^[ \t]*(?:(?P<make>KescoDeferred kesco_deferred_(?P<made>\d+);)  // kesco: [^\r\n\\]*"
    rb"|kesco_deferred_(?P<run>\d+)\.run\(\);  // kesco: [^\r\n\\]*"
    rb"|kesco_deferred_(?P<keep>\d+)\.keep\(\[&(?P<held>(?:, (?:\w+|&?\w+ = \w+|\w+ = std::move\(\w+\)))*)\]"
    rb"\(\) mutable \{  // kesco: [^\r\n\\]*"
    rb"|(?P<end>\}\);)  // kesco: until here)\r?$",
    re.MULTILINE,
)
_LINES = ["made", "run", "keep", "end", "run"]
"""What is written for each, in its order."""
_PUT_AWAY = re.compile(r'^#pragma push_macro\("(\w+)"\)$', re.MULTILINE)


def deferring(program: ir.Program, loops: Sequence[Deferred]) -> tuple[Edit, ...]:
    """The edits that keep what uses results; raises `CannotInsert` where they cannot be made."""
    text, edits = program.text, list[Edit]()
    if _OURS.search(text) or any(_OURS.fullmatch(name.encode()) for name in program.header_names) or _LINE.search(text):
        raise CannotInsert("the file or a header has names that deferred work needs")
    if macro := changed((f"{CLASS} kesco_deferred_0.{RUN}.{KEEP} mutable",), macros(program)):
        raise CannotInsert(f"the macro '{macro}' has a name that deferred work needs")
    names = {id(one): f"kesco_deferred_{number}" for number, one in enumerate(loops)}
    for _, each in groupby(loops, key=lambda one: one.turn.whole):
        mine = list(each)  # what is made first is done with last, also where the loop is left by an exception
        whole = mine[0].turn.whole
        between = newline_of(text) + line_indent(text, whole.start)
        edits.append(lines_before(text, whole.start, [f"{CLASS} {names[id(one)]};{_BEGUN}" for one in mine]))
        last = between.join(f"{names[id(one)]}.{RUN}();{_DONE}" for one in reversed(mine))
        edits.append(behind_statement(text, whole, last))
    ahead: defaultdict[int, list[str]] = defaultdict(list)
    for one in loops:
        ahead[one.turn.statements[one.due].start].append(
            f"{names[id(one)]}.{RUN}();{_WAITED if one.turn.early else _DUE}"
        )
    for one in loops:
        held = "".join(f", {each}" for each in one.held)
        ahead[one.turn.part[0]].append(
            f"{names[id(one)]}.{KEEP}([&{held}]() mutable {{{_WAIT if one.turn.early else _KEPT}"
        )
        edits.append(behind_statement(text, one.turn.statements[one.turn.last - 1], _END))
    edits += (lines_before(text, at, lines) for at, lines in ahead.items())
    newline = newline_of(text)
    tops = [f.top for f in program.functions if f.here and any(_is_in(f, one) for one in loops)]
    at = prologue_place(text, min(tops))
    start = "" if at == 0 or text[at - 1 : at] == b"\n" else newline
    section = _section(macros(program)).replace("\n", newline)
    return (*edits, Edit(at, at, start + section + newline, -10))


def _is_in(function: ir.Function, one: Deferred) -> bool:
    return function.span.start <= one.turn.whole.start < function.span.end


def _section(defined: Collection[str]) -> str:
    plain = deferred_text(())
    away = in_the_way(plain, defined)
    return deferred_text(away) if away else plain


@cache
def _genuine(section: str, defined: frozenset[str]) -> bool:
    away = tuple(_PUT_AWAY.findall(section))
    return not set(in_the_way(section, defined)) - {*away} and section == deferred_text(away)


def _section_of(text: bytes) -> tuple[int, int] | None:
    """Where the genuine section of a text begins and ends, if it has one, and only one."""
    return section_between(text, MARK, LAST, _genuine)


def without_deferred(text: bytes) -> bytes:
    """The text with its genuine deferring taken out: of the same length, with the same lines."""
    found = _section_of(text)
    if found is None:
        return text
    outside = text[: found[0]] + _blank(text[slice(*found)]) + text[found[1] :]
    plain = _LINE.sub(lambda m: _blank(m[0]), outside)
    return text if _OURS.search(plain) else plain


def _blank(text: bytes) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", text)


def written(text: bytes) -> tuple[Written, ...] | None:
    """What a text defers, in its order; None if the lines do not belong together."""
    if without_deferred(text) == text:
        return ()
    found: dict[int, list[tuple[str, int]]] = {}
    held: dict[int, tuple[str, ...]] = {}
    kept = -1  # the number of what is being kept
    for line in _LINE.finditer(text):
        kind = next(name for name in ("made", "run", "keep", "end") if line[name] is not None)
        number = kept if kind == "end" else int(line[kind])
        if (kept >= 0) is not (kind == "end"):
            return None
        kept = number if kind == "keep" else -1
        if kind == "keep":
            held[number] = tuple(each.decode() for each in line["held"].split(b", ")[1:])
        found.setdefault(number, []).append((kind, line.start() if kind in ("run", "keep") else line.end()))
    if any([kind for kind, _ in places] != _LINES for places in found.values()):
        return None
    return tuple(_as_written([place for _, place in found[number]], held[number]) for number in sorted(found))


def _as_written(places: Sequence[int], held: tuple[str, ...]) -> Written:
    made, due, kept, end, last = places
    return Written(made, due, kept, end, last, held)


def same_text(deferred: bytes, plain: bytes) -> bool:
    """Whether the first text, with its deferring taken out, is the second, apart from white space."""
    ours, theirs = (re.sub(rb"\s+", b"", one) for one in (without_deferred(deferred), plain))
    return ours == theirs and without_deferred(deferred) != deferred
