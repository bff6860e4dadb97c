"""Launches of loops that are captured, and given to the device many at a time (`kesco.ir.batches`).

In: a text that is ready, as a `Program`, and what of it is to be batched. Out: the same with those launches on
``kesco_batch()``; and, the other way, a text without that. It comes behind the streams, and touches no function that
has any: to the device, a batch is work on the default stream.

`without_batches` takes genuine ones out again, each of the same length, so that everything else is read and proven as
if they were not there. What is not written exactly as here stays, and is then code like any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache

from kesco.emit.deferred import without_deferred
from kesco.emit.edits import Edit, at_line_start, line_indent, newline_of
from kesco.emit.following import stated
from kesco.emit.hooks import without_hooks
from kesco.emit.names import changed, in_the_way, macros, section_between
from kesco.emit.places import CannotInsert, behind_statement, line_end, lines_before, prologue_place
from kesco.emit.prologue import END as STREAMS_END
from kesco.emit.prologue import batches_text
from kesco.ir import program as ir
from kesco.ir.batches import CALLS, END, GUARD, ISSUE, STREAM, TRIP, Batches
from kesco.source import Span

MARK = "// ---- kesco: batches of launches of this file"
LAST = "// ---- kesco: batches end"  # not as the prologue ends, which is looked for in the text
_SAID = "  // kesco: launches of this loop are given to the device many at a time, as graphs"
_WHY = "  // kesco: in front of what may look at them"
_OURS = re.compile(rb"\b(?:kesco_batch\w*|KescoBatch\w*)")
_LINE = re.compile(
    rb"\b(?:%s kesco_batch_\d+\((\d+)\);|kesco_batch_\d+\.%s\(\);|%s\(\);|%s\(\);)"
    rb"(?:  // kesco: [^\r\n\\]*)?(?=[ \t]*\r?$)" % tuple(name.encode() for name in (GUARD, END, ISSUE, TRIP)),
    re.MULTILINE,
)
_CALL = re.compile(rb"\b(?:%s)(?=\s*\()" % b"|".join(name.encode() for name in CALLS.values()))
_BACK = {late.encode(): name.encode() for name, late in CALLS.items()}
_NAMED = re.compile(rb"(?:::)?(\w+)")
_SCHEDULED = re.compile(rb"kesco\w*->stream\[[^\]\n]*\]|kesco_current\(\)")
_GIVEN = re.compile(rb"\b(%s\()(kesco\w*->stream\[[^\]\n]*\]|kesco_current\(\))(\))(?=\s*>>>)" % STREAM.encode())
_ON = re.compile(rb",(?:\s*0,)?\s*%s\(\)(?=\s*>>>)" % STREAM.encode())
_PLACES = re.compile(r"KescoBatches at\[(\d+)\];")
_PUT_AWAY = re.compile(r'^#pragma push_macro\("(\w+)"\)$', re.MULTILINE)
_OPEN, _CLOSE = b"{}"
_STAND_IN = (
    "namespace {{ struct {guard} {{ explicit {guard}(int); ~{guard}(); void {end}(void); }}; "
    "cudaStream_t {stream}(cudaStream_t = nullptr); void {trip}(void); void {issue}(void); "
    "cudaError_t {cudaMemset}(void*, int, decltype(sizeof(0))); "
    "cudaError_t {cudaMemsetAsync}(void*, int, decltype(sizeof(0)), cudaStream_t = nullptr); "
    "cudaError_t {cudaMemcpy}(void*, const void*, decltype(sizeof(0)), cudaMemcpyKind); }}"
).format(guard=GUARD, end=END, stream=STREAM, trip=TRIP, issue=ISSUE, **CALLS)


def batched(program: ir.Program, found: Batches) -> tuple[Edit, ...]:
    """The edits that batch these launches; raises `CannotInsert` where they cannot be made."""
    text = program.text
    if _OURS.search(text) or any(_OURS.fullmatch(name.encode()) for name in program.header_names):
        raise CannotInsert("the file or a header has names that batches need")
    if macro := changed((_STAND_IN, "kesco_batch_0"), macros(program)):
        raise CannotInsert(f"the macro '{macro}' has a name that batches need")
    edits = [e for n in found.launches for e in _launched(program, program.operations[n])]
    names = [named for n in found.calls if (named := _NAMED.match(text, program.operations[n].span.start)) is not None]
    edits += [Edit(*name.span(1), CALLS[name[1].decode()]) for name in names]
    for number, loop in enumerate(found.loops):
        edits.append(lines_before(text, loop.whole.start, [f"{GUARD} kesco_batch_{number}({number});{_SAID}"]))
        edits.append(behind_statement(text, loop.whole, f"kesco_batch_{number}.{END}();"))
    edits += [_opened(text, place) for place in found.trips]
    for place, lone in found.issues:
        edits += _braced(text, place) if lone else [lines_before(text, place.start, [f"{ISSUE}();{_WHY}"])]
    newline, tops = newline_of(text), [f.top for f in program.functions if f.here and _edited(f, edits)]
    called = {name[1].decode() for name in names}
    calls, streams = tuple(name for name in CALLS if name in called), STREAMS_END.encode() in text
    section = _section(len(found.loops), calls, macros(program), streams=streams).replace("\n", newline)
    at = max(prologue_place(text, min(tops)), _behind_streams(text, min(tops)))
    start = "" if at == 0 or text[at - 1 : at] == b"\n" else newline
    return (*edits, Edit(at, at, start + section + newline, -10))


def _launched(program: ir.Program, operation: ir.Operation) -> list[Edit]:
    """The edits that let a launch be late: on the default stream, or on one of kesco's where that is the same."""
    start, end = operation.stream_text or (0, 0)
    written = program.text[start:end].strip()
    if written in (b"", b"0", b"nullptr", b"NULL"):
        return stated(program, operation, f"{STREAM}()")
    if _SCHEDULED.fullmatch(written) is None:
        raise CannotInsert(f"line {operation.span.line}: its stream is not written as kesco does")
    return [Edit(start, start, f"{STREAM}("), Edit(end, end, ")")]


def _edited(function: ir.Function, edits: list[Edit]) -> bool:
    return any(function.span.start <= e.start < function.span.end for e in edits)


def _behind_streams(text: bytes, top: int) -> int:
    """Where the line behind the prologue of streams begins, if that stands above an offset; else 0."""
    end = text.rfind(STREAMS_END.encode(), 0, top)
    return text.find(b"\n", end) + 1 if end >= 0 else 0


def _opened(text: bytes, body: Span) -> Edit:
    """A line at the beginning of a loop's body."""
    start, newline = body.start + 1, newline_of(text)
    indent = line_indent(text, start) + "  "
    ends = not text[start : line_end(text, start)].strip()
    first = text[start : line_end(text, start)].strip().startswith(b"//")
    if first:
        return Edit(line_end(text, start), line_end(text, start), f"{newline}{indent}{TRIP}();")
    return Edit(start, start, f"{newline}{indent}{TRIP}();{'' if ends else newline + indent}")


def _braced(text: bytes, place: Span) -> list[Edit]:
    """The unbraced body of another statement, with a line in front of it; `place` has its semicolon."""
    newline, indent = newline_of(text), line_indent(text, place.start)
    outer = indent if at_line_start(text, place.start) else indent + "  "
    before = f"{{{newline}{outer}{ISSUE}();{_WHY}{newline}{outer}"
    return [Edit(place.start, place.start, before), Edit(place.end, place.end, f"{newline}{indent}}}", 9)]


# ---- the section above the functions, and the way back --------------------------------------------------------------


def _section(batches: int, calls: Collection[str], defined: Collection[str], *, streams: bool) -> str:
    """The text that defines `STREAM` and the others, for so many loops; `streams`: the file has kesco's, too."""
    plain = batches_text(batches, calls, (), streams=streams)
    away = in_the_way(plain, defined)
    return batches_text(batches, calls, away, streams=streams) if away else plain


@cache
def _genuine(section: str, defined: frozenset[str]) -> bool:
    room = _PLACES.search(section)
    away = tuple(_PUT_AWAY.findall(section))
    if room is None or set(in_the_way(section, defined)) - {*away}:
        return False
    calls = tuple(name for name, late in CALLS.items() if f"cudaError_t {late}(" in section)
    return section == batches_text(int(room[1]), calls, away, streams="kesco_late" in section)


def section_of(text: bytes) -> tuple[int, int] | None:
    """Where the genuine section of a text begins and ends, if it has one, and only one."""
    return section_between(text, MARK, LAST, _genuine)


def declared(text: bytes) -> bytes:
    """The text with bare declarations in the place of its genuine section: of the same length, with the same lines."""
    found = section_of(text)
    if found is None:
        return text
    start, end = found
    lines, short = text.count(b"\n", start, end), _STAND_IN.encode()
    return text[:start] + short + b" " * (end - start - len(short) - lines) + b"\n" * lines + text[end:]


def without_additions(text: bytes) -> bytes:
    """The text without hooks, batches and what is deferred, as what is read and proven."""
    return without_deferred(without_batches(without_hooks(text)))


def without_batches(text: bytes) -> bytes:
    """The text with its genuine batches taken out: of the same length, with the same lines."""
    return _taken_out(text, b";")


def _taken_out(text: bytes, statement: bytes) -> bytes:
    """The same with this in the place of each statement."""
    found = section_of(text)
    room = _PLACES.search(text.decode("utf-8", "surrogateescape"), found[0]) if found is not None else None
    if found is None or room is None:
        return text
    start, end = found
    outside = text[:start] + re.sub(rb"[^\r\n]", b" ", text[start:end]) + text[end:]
    if any(one[1] is not None and int(one[1]) >= int(room[1]) for one in _LINE.finditer(outside)):
        return text
    blank = _LINE.sub(lambda m: statement.ljust(len(m[0])), outside)
    blank = _GIVEN.sub(lambda m: b" " * len(m[1]) + m[2] + b" ", blank)
    blank = _CALL.sub(lambda m: _BACK[m[0]].rjust(len(m[0])), _ON.sub(_blank, blank))
    return text if _OURS.search(blank) else blank


def _blank(found: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\r\n]", b" ", found[0])


def same_text(batches: bytes, plain: bytes) -> bool:
    """Whether the first text, with its batches taken out, is the second, apart from white space and pairs of braces.

    Such a pair is around the unbraced body of another statement.
    """
    ours, theirs = (re.sub(rb"\s+", b"", text) for text in (_taken_out(batches, b""), plain))
    at = depth = 0
    more: list[int] = []  # the depths of the pairs that only the first one has
    for letter in ours:
        other = theirs[at] if at < len(theirs) else -1
        if letter == _CLOSE and more and more[-1] == depth:
            more.pop()
        elif letter == other:
            at += 1
        elif letter == _OPEN:
            more.append(depth + 1)
        else:
            return False
        depth += (letter == _OPEN) - (letter == _CLOSE)
    return at == len(theirs) and not more
