"""Launch hooks in the text: ``kesco_before(…)`` and ``kesco_after(…)`` around each launch (``--fikit``).

In: a text that is ready, as a `Program`. Out: the same with hooks, which a runtime may define
(``kesco/runtime/hooks/launch_hooks.h``); and, the other way, a text without them. It comes behind all else because the
hooks say what is launched where, streams included.

1. A launch gets hooks where a line can be put before and behind its statement and it is the only one there.
2. Its dimensions are written a second time, in the line before, only if reading them twice is the same as once: names,
   members, numbers and arithmetic. Otherwise the hook says 0, which is "not known".
3. A section at the top of the file declares the hooks, which are weak, and lists the places.

`without_hooks` takes genuine hooks out again, each an empty statement of the same length, so that everything else is
read and proven as if they were not there. What is not written exactly as here stays, and is then code like any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

from kesco.emit.edits import Edit, newline_of
from kesco.emit.names import changed, macros
from kesco.emit.places import CannotInsert, around, line_end, prologue_place
from kesco.emit.prologue import END as STREAMS_END
from kesco.ir import program as ir
from kesco.source import Span

MARK = "// ---- kesco: launch hooks of this file"
END = "// ---- kesco: launch hooks end"  # not as the prologue ends, which is looked for in the text
_TAG = "// kesco: launch hook"
_HEAD = f"""{MARK}; without a runtime they do nothing
extern "C" {{
struct KescoLaunchSite {{
  unsigned version, size;
  const char *kernel, *file;
  unsigned line, column;
  const char* function;
}};
struct KescoLaunch {{
  const void* function;
  unsigned grid[3], block[3];
  decltype(sizeof(0)) shared;
  void* stream;
}};
__attribute__((weak)) void kesco_launch_before(const KescoLaunchSite*, const KescoLaunch*);
__attribute__((weak)) void kesco_launch_after(const KescoLaunchSite*, const KescoLaunch*);
}}
namespace {{
__attribute__((section("kesco_launches"), used)) const KescoLaunchSite kesco_sites[] = {{
"""
_TAIL = f"""}};
thread_local KescoLaunch kesco_launch;
inline void kesco_before(int site, dim3 grid, dim3 block, decltype(sizeof(0)) shared, cudaStream_t stream) {{
  if (!kesco_launch_before) return;
  kesco_launch = {{nullptr, {{grid.x, grid.y, grid.z}}, {{block.x, block.y, block.z}}, shared, (void*)stream}};
  kesco_launch_before(&kesco_sites[site], &kesco_launch);
}}
inline void kesco_after(int site) {{
  if (kesco_launch_after) kesco_launch_after(&kesco_sites[site], &kesco_launch);
}}
}}  // namespace
{END}
"""
_ROW = re.compile(r'  \{1, sizeof\(KescoLaunchSite\), ("[^"\\\n]*"), ("[^"\\\n]*"), (\d+), (\d+), ("[^"\\\n]*")\},')
_OURS = re.compile(rb"\bkesco_(?:before|after|sites|launch\w*)\b|\bKescoLaunch\w*\b")
_LINE = re.compile(
    rb"^([ \t]*)(kesco_before\(\d+, ([^;\"'\n]*)\);|kesco_after\(\d+\);)  // kesco: launch hook(?=[ \t]*\r?$)",
    re.MULTILINE,
)
_TOKEN = re.compile(r"\s+|[A-Za-z_]\w*|\d[\w.]*|->|::|<<|>>|[-+*/%()\[\].,?:<>]")
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\(?)[ \t]*([^\n]*)", re.MULTILINE)
_CASTS = frozenset({"dim3", "int", "unsigned", "long", "size_t", "sizeof", "uint32_t", "int64_t", "uint64_t"})
_PURE = (ir.Constant, ir.Name, ir.Select, ir.Subscript, ir.Dereference, ir.Decay, ir.Binary, ir.Unary, ir.Branch,
         ir.Cast, ir.Literal)  # fmt: skip
_BY_CALL = "cudaLaunchKernel"
_NOT_KNOWN = "dim3(0, 0, 0), dim3(0, 0, 0), 0, 0"


@dataclass(frozen=True, slots=True)
class _Launch:
    """A launch that is found in a program: what sets its dimensions and stream, and the function it stands in."""

    kernel: str
    configuration: tuple[ir.Expr, ...]
    span: Span
    operation: int
    function: ir.Function


def hooks(
    program: ir.Program, text: bytes, source: ir.Program, place: Callable[[Span], Span] = lambda span: span
) -> tuple[tuple[Edit, ...], tuple[tuple[Span, str], ...]]:
    """The edits that put hooks in, and the launches that have none, with the reason.

    `program` is what the text was read as. Places are those in the author's text: `source` has the same launches in the
    same order, and `place` takes its places there.
    """
    launches, written = _launches(program), _launches(source)
    if not launches:
        return (), ()
    same = [one.kernel for one in launches] == [one.kernel for one in written]
    places = {one.span: place(written[n].span) if same else one.span for n, one in enumerate(launches)}
    first = places[launches[0].span]
    headers = (name.encode() for name in program.header_names)
    if _OURS.search(text) or any(map(_OURS.fullmatch, headers)):
        return (), ((first, "the file or a header has names that the hooks need"),)
    if macro := changed((_HEAD, _TAIL), macros(program)):
        return (), ((first, f"the macro '{macro}' has a name that the hooks need"),)
    by_statement: dict[tuple[int, int] | None, list[_Launch]] = {}
    for launch in launches:
        around_it = program.operations[launch.operation].statement
        by_statement.setdefault((around_it.start, around_it.end) if around_it else None, []).append(launch)
    edits: list[Edit] = []
    rows: list[str] = []
    left: list[tuple[Span, str]] = []
    tops: list[int] = []
    for statement, found in by_statement.items():
        operation = program.operations[found[0].operation]
        why = operation.stuck or ("" if statement and not operation.within else "it is a part of another statement")
        why = "several launches share its statement" if len(found) > 1 and statement else why
        if not why and statement is not None:
            try:
                before = f"kesco_before({len(rows)}, {_described(found[0], text)});  {_TAG}"
                after = f"kesco_after({len(rows)});  {_TAG}"
                edits += around(program, statement, operation.number, [before], [after])
            except CannotInsert as reason:
                why = str(reason)
        if why:
            left += [(places[one.span], why) for one in found]
            continue
        rows.append(_row(found[0], program.path, places[found[0].span]))
        tops.append(found[0].function.top)
    if not rows:
        return (), tuple(left)
    newline = newline_of(text)
    section = (_HEAD + "".join(f"{row}\n" for row in rows) + _TAIL).replace("\n", newline)
    at = max(prologue_place(text, min(tops)), _behind_streams(text, min(tops)))
    start = "" if at == 0 or text[at - 1 : at] == b"\n" else newline
    edits.append(Edit(at, at, start + section + newline, -10))
    return tuple(edits), tuple(left)


def _behind_streams(text: bytes, top: int) -> int:
    """Where the line behind the prologue of streams begins, if that stands above an offset; else 0."""
    end = text.rfind(STREAMS_END.encode(), 0, top)
    return text.find(b"\n", end) + 1 if end >= 0 else 0


def _launches(program: ir.Program) -> list[_Launch]:
    """All launches that are written in the file, in order."""
    found: dict[int, _Launch] = {}
    for function in program.functions:
        for one in ir.walk(function.body) if function.here else ():
            if isinstance(one, ir.Launch) and one.operation >= 0:
                made = _Launch(one.kernel.name, one.configuration, one.span, one.operation, function)
                found.setdefault(one.operation, made)
            elif isinstance(one, ir.Call) and one.name == _BY_CALL and one.operation >= 0 and len(one.arguments) >= 4:
                names = [part.name for part in ir.walk(one.arguments[0]) if isinstance(part, ir.FunctionName)]
                read = (*one.arguments[1:3], *one.arguments[4:])
                made = _Launch("".join(names[:1]), read, one.span, one.operation, function)
                found.setdefault(one.operation, made)
    return sorted(found.values(), key=lambda launch: launch.span.start)


def _row(launch: _Launch, path: str, place: Span) -> str:
    names = (launch.kernel, PurePath(path).name, launch.function.name)
    kernel, file, function = (re.sub(r'["\\\n]', "?", name) for name in names)
    return f'  {{1, sizeof(KescoLaunchSite), "{kernel}", "{file}", {place.line}, {place.column}, "{function}"}},'


def _described(launch: _Launch, text: bytes) -> str:
    """Grid, block, shared memory and stream as they are written, or zeros where they must be read once only."""
    if not all(_pure(one) for one in launch.configuration):
        return _NOT_KNOWN
    written = _written(text[launch.span.start : launch.span.end].decode("utf-8", "replace"))
    if not 2 <= len(written) <= 4 or not all(is_pure(one, {}) for one in written):
        return _NOT_KNOWN
    return ", ".join([*written, *("0",) * (4 - len(written))])


def _pure(one: ir.Expr) -> bool:
    """Whether evaluating it twice is as good as once; constructors of dim3 are known to do nothing else."""
    for part in ir.walk(one):
        if isinstance(part, ir.Call):
            if part.name.rpartition("::")[2] != "dim3":
                return False
        elif not isinstance(part, _PURE):
            return False
    return True


def _written(launch: str) -> list[str]:
    """The configuration of a launch as it stands in the text; nothing where it is not understood."""
    if "<<<" in launch:
        inner = launch.partition("<<<")[2].partition(">>>")[0]
        return _split(inner)
    name, _, rest = launch.partition("(")
    words = _split(rest.rpartition(")")[0])
    plain = name.strip().removeprefix("::") == _BY_CALL
    return [words[1], words[2], *words[4:6]] if plain and 4 <= len(words) <= 6 else []


def _split(text: str) -> list[str]:
    """The arguments of a list, at its commas."""
    parts, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [" ".join(part.split()) for part in (*parts, text[start:])]


def is_pure(text: str, defined: dict[str, str], depth: int = 0) -> bool:
    """Whether a text only reads: names, members, numbers, arithmetic, and ``dim3`` or a number's type in front of a
    parenthesis. Macros of the file (`defined`) must be such texts, too.
    """
    position, last = 0, ""
    level = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or depth > 8:
            return False
        word, position = token[0], token.end()
        if word.isspace():
            continue
        level += {"(": 1, ")": -1}.get(word, 0)
        called = (
            word == "(" and (last in (")", "]", ">") or (last[:1].isalpha() or last[:1] == "_")) and last not in _CASTS
        )
        repeated = word in "+-" and last == word
        if level < 0 or called or repeated:
            return False
        if word in defined and not is_pure(defined[word], defined, depth + 1):
            return False
        last = word
    return level == 0


def without_hooks(text: bytes) -> bytes:
    """The text with its genuine hooks taken out: of the same length, with the same lines."""
    start, end = text.find(MARK.encode()), text.find(END.encode())
    if start < 0 or end < start or text.count(MARK.encode()) != 1:
        return text
    end = line_end(text, end)
    if not _is_genuine(text[start:end]):
        return text
    outside = text[:start] + re.sub(rb"[^\r\n]", b" ", text[start:end]) + text[end:]
    found = list(_LINE.finditer(outside))
    defined = {m[1]: "(" if m[2] else m[3] for m in _DEFINITION.finditer(outside.decode("utf-8", "replace"))}
    blank = outside
    for one in found:
        if one[3] is not None and not is_pure(one[3].decode("utf-8", "replace"), defined):
            return text
        blank = blank[: one.start(2)] + b";" + b" " * (one.end() - one.start(2) - 1) + blank[one.end() :]
    return text if _OURS.search(blank) else blank


def _is_genuine(section: bytes) -> bool:
    normal = section.replace(b"\r\n", b"\n").decode("utf-8", "replace") + "\n"
    if not normal.startswith(_HEAD) or not normal.endswith(_TAIL):
        return False
    return all(_ROW.fullmatch(row) for row in normal[len(_HEAD) : len(normal) - len(_TAIL)].splitlines())
