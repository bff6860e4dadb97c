"""Where lines can be put, and the lines at the head of a function that fetch its streams.

In: the program and the function to be rewritten. Out: edits. Apart from the writing of waits and records because it
is about places in the text only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kesco.emit.early import before_clock
from kesco.emit.edits import Edit, at_line_start, behind, line_indent, newline_of
from kesco.emit.names import macros
from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, SiteKind
from kesco.ir.pieces import pieces
from kesco.ir.replay import FILL
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import SyncPlan
from kesco.ir.transfers import Fetches, Prefetch, Sends, Zeroes
from kesco.ir.turns import Turns
from kesco.source import Span


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One function to be rewritten, with those whose calls are a part of it.

    `watched` are the operations in macros that leave it where a call has failed: there the host waits.
    """

    function: ir.Function
    region: Region
    schedule: Schedule
    plan: SyncPlan
    prefetches: tuple[Prefetch, ...] = ()
    members: tuple[ir.Function, ...] = ()
    sends: Sends | None = None
    watched: tuple[int, ...] = ()
    fetches: Fetches | None = None
    zeroes: Zeroes | None = None
    turns: tuple[Turns, ...] = ()


class CannotInsert(Exception):
    """A place where text would have to be inserted has none; the message is the reason in words."""


_FILLS = ("cudaMemset", "cudaMemsetAsync")
_FILL = re.compile(rb"cudaMemset(?:Async)?(?=\s*\()")
_ATTRIBUTE = re.compile(rb"\[\[(?:[^][]|\[[^][]*\])*\]\]\s*\Z")
_PRAGMA = re.compile(rb"[ \t]*#[ \t]*pragma\b[^\n]*[^\\\s][ \t]*\r?\n")
_TASK = re.compile(rb"#[ \t]*pragma[ \t]+kesco[ \t]+task\b")
_WAITS = re.compile(rb"\bcuda(?:Device|Thread)Synchronize\s*\(")
_NAMES = ("cudaDeviceSynchronize", "cudaThreadSynchronize")
_CHECKED = re.compile(rb"(?!if\b)[A-Za-z_]\w*\((?:(?!//|/\*|\*/)[^\n\\])*\)\s*;")
_WAIT = re.compile(rb"(?:\(\s*void\s*\)\s*)?(?:::)?(cudaDeviceSynchronize|cudaThreadSynchronize)\s*\(\s*\)\s*;")


def has_removable(text: bytes) -> bool:
    """Whether a file may have waits for the device that can be taken out."""
    return _WAITS.search(text) is not None


def removable(program: ir.Program, region: Region, checked: Collection[int] = ()) -> tuple[int, ...]:
    """The sites of waits for the device that are statements of their own.

    Nobody looks at their result, but for those of `checked`, which do nothing else with it.
    """
    found = []
    for site in region.sites:
        if site.role is not Role.DEVICE_SYNC or site.kind is not SiteKind.SYNC or site.operation < 0:
            continue
        one = program.operations[site.operation]
        if one.statement is None or one.lone:
            continue
        text = program.text[one.statement.start : one.statement.end]
        wait = _WAIT.fullmatch(text) if not (one.within or one.stuck) else None
        bare = wait is not None and (wait[1].decode() not in macros(program) or _is_all(program, site.operation))
        only = site.number in checked and site.label.partition("#")[0] in _NAMES
        if bare or (only and _CHECKED.fullmatch(text)):
            found.append(site.number)
    return tuple(found)


def _is_all(program: ir.Program, operation: int) -> bool:
    """Whether a statement is nothing but this wait where its old name, which toolkits lack, is a macro."""
    place = program.operations[operation].statement
    assert place is not None
    nodes = (n for f in program.functions if f.here for n in ir.walk(f.body))
    inside = [n for n in nodes if isinstance(n, ir.Stmt) and place.start <= n.span.start < place.end]
    if len(inside) != 1 or not isinstance(inside[0], ir.Evaluate) or b"Thread" not in _text(program, place):
        return False
    whole = ir.bare(inside[0].expression)
    return isinstance(whole, ir.Call) and whole.operation == operation and whole.name == "cudaDeviceSynchronize"


def _text(program: ir.Program, place: Span) -> bytes:
    return program.text[place.start : place.end]


def taken_out(program: ir.Program, operation: int) -> Edit:
    """A wait becomes a comment."""
    place = program.operations[operation].statement
    assert place is not None
    text = program.text
    what = f"kesco: not needed here: {text[place.start : place.end].decode()}"
    rest = text[place.end : line_end(text, place.end)]
    lonely = not rest.strip() and at_line_start(text, place.start)
    return Edit(place.start, place.end, f"// {what}" if lonely else f"/* {what} */")


def line_end(source: bytes, offset: int) -> int:
    """The end of the line that holds an offset, without its line break."""
    found = source.find(b"\n", offset)
    end = len(source) if found < 0 else found
    return end - 1 if source[end - 1 : end] == b"\r" and end > offset else end


def lines_before(source: bytes, offset: int, lines: list[str], *, inside: bool = False) -> Edit:
    """Lines before the statement at an offset; with `inside`, before the brace there, as statements of its block.

    Pragmas and attributes right above a statement are about it, and stay with it.
    """
    offset = offset if inside else _before_attributes(source, offset)
    newline = newline_of(source)
    indent = line_indent(source, offset)
    if inside:
        deeper = indent + "  "
        head = "" if at_line_start(source, offset) else newline
        start = source.rfind(b"\n", 0, offset) + 1 if not head else offset
        text = head + "".join(f"{deeper}{line}{newline}" for line in lines) + (indent if head else "")
        return Edit(start, start, text, 5)
    if at_line_start(source, offset) and (start := _above_pragmas(source, offset)) >= 0:
        return Edit(start, start, "".join(f"{indent}{line}{newline}" for line in lines))
    if at_line_start(source, offset):
        deeper = "  " if source[offset : offset + 1] == b"}" else ""
        text = "".join(f"{deeper}{line}{newline}{indent}" for line in lines)
    else:
        text = newline + "".join(f"{indent}{line}{newline}" for line in lines) + indent
    return Edit(offset, offset, text)


def behind_statement(text: bytes, statement: Span, line: str) -> Edit:
    """A line behind a statement, with the comment that stands there left where it is."""
    end = statement.end
    while text[end : end + 1].isspace():
        end += 1
    end = end + 1 if text[end : end + 1] == b";" else statement.end
    rest, start = text[end : line_end(text, end)], newline_of(text) + line_indent(text, statement.start)
    if rest.rstrip().endswith(b"\\"):
        raise CannotInsert(f"line {statement.line}: its line goes on behind the end of the line")
    if rest.strip() and not rest.strip().startswith(b"//"):  # the rest of the line goes to a line of its own
        return Edit(end, end + len(rest) - len(rest.lstrip()), f"{start}{line}{start}")
    return Edit(line_end(text, end), line_end(text, end), f"{start}{line}", behind(statement.start))


def around(
    program: ir.Program, place: tuple[int, int], operation: int, before: list[str], after: list[str]
) -> list[Edit]:
    """Lines before and behind the statement at a place; `operation` is the first one in it."""
    first, newline = program.operations[operation], newline_of(program.text)
    if after and first.within:
        raise CannotInsert(f"line {first.span.line}: {first.stuck}")
    start, end = place
    source = program.text
    edits = []
    indent = line_indent(source, start)
    if first.lone:
        outer = indent if at_line_start(source, start) else indent + "  "
        joined = "".join(f"{newline}{outer}{line}" for line in before)
        edits.append(Edit(start, start, f"{{{joined}{newline}{outer}"))
        tail = "".join(f"{newline}{outer}{line}" for line in after)
        edits.append(Edit(end, end, f"{tail}{newline}{indent}}}", behind(start)))
        return edits
    if before:
        edits.append(lines_before(source, start, before))
    if after:
        text = "".join(f"{newline}{indent}{line}" for line in after)
        rest = source[end : line_end(source, end)]
        if rest.strip() and not rest.strip().startswith((b"//", b"}")):
            text += f"{newline}{indent}"
        if rest.strip().startswith(b"//"):
            end = line_end(source, end)
        elif rest.strip().startswith(b"}"):
            text += newline + indent
        if rest.rstrip().endswith(b"\\"):
            raise CannotInsert(f"line {first.span.line}: its line goes on behind the end of the line")
        edits.append(Edit(end, end, text, behind(start)))
    return edits


def _before_attributes(source: bytes, offset: int) -> int:
    """Where the attributes of the statement at an offset begin: the offset itself where it has none."""
    while found := _ATTRIBUTE.search(source, max(0, offset - 400), offset):
        line = source[source.rfind(b"\n", 0, found.start()) + 1 : found.start()]
        if b"//" in line:
            break
        offset = found.start()
    return offset


def _above_pragmas(source: bytes, offset: int) -> int:
    """The line of the first of the pragmas that stand right above the line of an offset; negative for none."""
    found, start = -1, source.rfind(b"\n", 0, offset) + 1
    while start > 0:
        previous = source.rfind(b"\n", 0, start - 1) + 1
        line = source[previous:start]
        if not _PRAGMA.match(line) or source[:previous].rstrip(b"\r\n").endswith(b"\\"):
            break
        found = start = previous
    return found


def streams_call(region: Region, name: str, pace: int | None = None) -> str:
    """The expression that fetches a function's streams, paced under a number; `name` is that of the local pointer."""
    values = [f"{name}_at_entry[{i}]" for i in range(len(region.guards))]
    if pace is not None:
        return f"kesco_paced({', '.join((str(pace), *values))})"
    return f"&kesco_streams_if_distinct({', '.join(values)})" if values else "&kesco_streams()"


_JUMPS = ("goto", "a computed goto", "a label")


def prologue_place(text: bytes, top: int) -> int:
    """Where the prologue goes: before the first rewritten declaration, its attributes, its comment and its task.

    It is the source's: of a header, before its ``#include``.
    """
    top = pieces("", text).outermost(top)
    start = text.rfind(b"\n", 0, top) + 1
    if text[start:top].strip():
        return top
    while start > 0:
        previous = text.rfind(b"\n", 0, start - 1) + 1
        line = text[previous:start].strip()
        attribute = line.startswith(b"[[") and line.endswith(b"]]")
        comment = line.startswith(b"//") and b"*/" not in line and not line.endswith(b"\\")
        if not (attribute or comment or _TASK.match(line)):
            break
        start = previous
    return start


def body_of(program: ir.Program, rewrite: Rewrite) -> ir.Block:
    """The block with the function's own braces; a constructor's initialisers stand before it, perhaps ``try``, too."""
    body = rewrite.function.body
    text = program.text
    while isinstance(body, ir.Block) and text[body.span.start : body.span.start + 1] != b"{":
        inner = [s for s in body.body if isinstance(s, ir.Block)]
        if not inner:
            break
        body = _tried(body) or inner[-1]
    if not isinstance(body, ir.Block) or text[body.span.start : body.span.start + 1] != b"{":
        raise CannotInsert(f"line {rewrite.function.span.line}: its braces come from a macro")
    return body


def at_entry(program: ir.Program, rewrite: Rewrite, name: str) -> Edit:
    """The pointers to compare, as they are when the function is entered."""
    start = body_of(program, rewrite).span.start + 1
    source, newline = program.text, newline_of(program.text)
    values = ", ".join(f"(const void*){g}" for g in rewrite.region.guards)
    indent = line_indent(source, start) + "  "
    line = f"const void* const {name}_at_entry[] = {{{values}}};  // kesco: may these share memory?"
    ends = not source[start : line_end(source, start)].strip()
    return Edit(start, start, f"{newline}{indent}{line}{'' if ends else newline + indent}", -2)


def fetch_place(program: ir.Program, rewrite: Rewrite, operations: Collection[int]) -> int:
    """Where the streams are fetched: in front of their first use; at the entry where a jump might lead over that."""
    first, body = _first_use(program, rewrite, operations), body_of(program, rewrite)
    jumps = any(isinstance(one, ir.Obstacle) and one.reason in _JUMPS for one in ir.walk(body))
    return min(first, *(one.span.start for one in _flat(body)[:1])) if jumps else first


def _first_use(program: ir.Program, rewrite: Rewrite, operations: Collection[int]) -> int:
    """The start of the body's own statement that holds the first of the operations, which need the streams."""
    places = [program.operations[o].statement for o in operations]
    starts = [p.start for p in places if p is not None]
    first, body = min(starts, default=-1), body_of(program, rewrite)
    holder = next((one for one in _flat(body)[::-1] if one.span.start <= first), None)
    if holder is None or max(starts) > body.span.end:
        raise CannotInsert(f"line {rewrite.function.span.line}: no statement stands before the first operation")
    if (
        rewrite.watched
        and (inner := _tried(holder)) is not None
        and all(inner.span.start < one < inner.span.end for one in starts)
    ):
        within = [one for one in inner.body if one.span.start <= first]
        return min(within[-1].span.start, first) if within and within[-1].span.end >= first else first
    return min(holder.span.start, first) if holder.span.end >= first else first


def _flat(body: ir.Block) -> list[ir.Stmt]:
    """The statements right in a body."""
    inner = (one.body if isinstance(one, ir.Block) and one.span == body.span else (one,) for one in body.body)
    return [one for statements in inner for one in statements]


def tried(program: ir.Program, rewrite: Rewrite, place: int) -> ir.Block | None:
    """The block behind a ``try`` of the body's own that a place is in, or that is the body."""
    every = map(_tried, (*body_of(program, rewrite).body, rewrite.function.body))
    return next((one for one in every if one is not None and one.span.start < place < one.span.end), None)


def _tried(one: ir.Stmt) -> ir.Block | None:
    """The block behind ``try``."""
    if not isinstance(one, ir.Block) or not one.body or not isinstance(one.body[0], ir.Obstacle):
        return None
    inner = one.body[1] if one.body[0].reason == "a try block" and len(one.body) > 1 else None
    return inner if isinstance(inner, ir.Block) else None


def fetch(
    program: ir.Program,
    rewrite: Rewrite,
    name: str,
    operations: Collection[int],
    stretch: int | None,
    pace: int | None,
    more: Sequence[str] = (),
) -> list[Edit]:
    """The line that fetches the streams, before the first statement of the body that needs them, and `more` behind it.

    `stretch` is the number of the stretch of work that begins there, if one does, and `pace` that of the function.
    No clock is running where the streams are fetched, but of a function that is paced or compares its pointers.
    """
    call = streams_call(rewrite.region, name, pace)
    place = fetch_place(program, rewrite, operations)
    plain = pace is None and not rewrite.region.guards
    early = before_clock(program, body_of(program, rewrite), place) if plain else place
    used = _first_use(program, rewrite, operations) if plain and early == place else place
    if early == used:
        line = f"KescoStreams* {name} = {call if stretch is None else f'kesco_stretch({call}, {stretch}, false)'};"
        line += "  // kesco: one stream if two of these share memory" if rewrite.region.guards else ""
        rows = [(place, [line, *more])]
    else:
        begun = [f"{name} = kesco_stretch({name}, {stretch}, false);"] if stretch is not None else []
        joins = (s.span.start for s in rewrite.region.sites if s.role is Role.JOIN)
        if not begun and any(place < one < used for one in joins):
            begun = [f"{name} = {call};  // kesco: the device may be another one by now"]
        rows = [(early, [f"KescoStreams* {name} = {call};"]), (used, [*begun, *more])]
    return [replace(lines_before(program.text, at, lines), rank=-1) for at, lines in rows if lines]


def as_operation(prefetch: Prefetch) -> ir.Operation:
    """What stands for a prefetch among the operations of the text."""
    return ir.Operation(prefetch.operation, prefetch.statement, prefetch.statement, False, False, None)


def marks_of(rewrite: Rewrite) -> tuple[int, ...]:
    """The operations whose executions others are held behind, ascending."""
    sites = rewrite.region.sites
    return tuple(sorted({sites[one.mark].operation for one in rewrite.schedule.holds}))


def filled(program: ir.Program, rewrite: Rewrite, *more: ir.Operation) -> tuple[ir.Operation, ...]:
    """The operations, and `more`; memsets in replays, of memory without rows, get the name of kesco's own."""
    sites = (rewrite.region.sites[number] for one in rewrite.plan.replays for number in one.sites)
    found = [*program.operations]
    for number in {s.operation for s in sites if s.label.partition("#")[0] in _FILLS}:
        name = _FILL.match(program.text, found[number].span.start)
        if name is not None and name[0].decode() not in macros(program):
            found[number] = replace(found[number], rename=(name.span(), FILL))
    return (*found, *more)
