"""Source beside rewritten source: aligned rows of highlighted lines, each inserted line with words about it.

In: both texts, and which stretches of the first are in the second. Out: `Row`s for a template. It is apart from the
page because it knows nothing of operations, only of text.

Method:

1. Lines that share a kept byte are one row. Where nobody knows what was kept, `difflib` finds lines that are alike.
2. Pygments names the tokens of each whole text, so that comments over several lines are seen; what was inserted within
   a line is a token's mark. Control characters become pictures, and bytes that are no UTF-8 the replacement character.
3. A line that was inserted is explained by a table of what kesco inserts, or by its own comment.
4. Long stretches of inserted lines (the prologue) and of unchanged ones are blocks, which the page folds.

It never leaves a line out: every line of either text is in exactly one row.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from kesco.diagnostics import PICTURES

Kept = tuple[int, int, int]
LONG_BLOCK = 12  # lines that are inserted together, or stay as they are, from which on they are folded
CONTEXT = 4  # unchanged lines that stay in sight
_CLASSES = (  # of pygments' tokens, by the beginning of their names; the first that fits
    ("Comment.Preproc", "pp"),
    ("Comment", "co"),
    ("Keyword", "kw"),
    ("Literal.String", "st"),
    ("Literal.Number", "nu"),
    ("Name.Function", "fn"),
    ("Name.Builtin", "bi"),
    ("Name.Class", "bi"),
)
_EXPLAINED = (  # what an inserted line has, and what it does; kesco's variable may have another name
    (r"cudaEventRecord\(\w+->tail\[.+?\], \w+->stream\[(.+?)\]\)", "Marks the end of what stream {0} has to do"),
    (r"cudaEventRecord\(\w+->done\[(.+?)\], \w+->stream\[(.+?)\]\)", "Event {0} marks this point of stream {1}"),
    (
        r"cudaStreamWaitEvent\(\w+->stream\[(.+?)\], \w+->done\[(.+?)\], 0\)",
        "Stream {0} pauses here until event {1} has passed, and the host goes on",
    ),
    (
        r"cudaStreamWaitEvent\(cudaStreamLegacy",
        "The default stream pauses until other streams are done, and the host goes on",
    ),
    (r"kesco_streams\(\)", "The streams and events of this device context, made at the first call"),
    (r"kesco_prefetch\(.*KescoHost", "Moves managed memory back to the host, beside other work"),
    (r"kesco_prefetch\(.*KescoBoth", "Copies managed memory to the device; the host keeps its own"),
    (r"kesco_prefetch\(", "Moves managed memory to where it is needed next, beside other work"),
    (r"kesco_mark\(", "Marks how far a task has come, for less urgent ones to wait for"),
    (r"kesco_hold\(\w+->part\[.+?\], (\d+), \w+->stream\[(.+?)\]\)", "Stream {1} waits until {0} % of that is done"),
    (r"kesco_replay\(", "Runs this work as a CUDA graph while these values stay the same"),
    (r"kesco_memset\(", "A memset on a stream; a kernel where it is little memory and becomes part of a CUDA graph"),
    (r"kesco_sent\(", "The host waits until memory that is read in the background has been read"),
    (r"kesco_copy\w*\(|kesco_send\(", "A copy on a stream, through pinned memory where it is large"),
    (r"kesco_blas\(", "The handle of cuBLAS works on this stream from here on, with a workspace of the stream"),
    (r"KescoMain", "From here on functions have streams; who else calls them gets the serial program"),
    (r"kesco_malloc\(|kesco_free\(", "Memory that is handed on in the order of streams"),
    (r"\w+->stream\[(.+?)\]", "Runs on stream {0}"),
)
_PROLOGUE = (
    "The prologue: streams and events, made once for each device context and kept. The proof compares it byte by byte, "
    "since it relies on what these names mean."
)


@dataclass(frozen=True, slots=True)
class Run:
    """Letters of one look: the class of their token, and whether they were inserted."""

    text: str
    token: str = ""
    added: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the line's number and runs on either side, None where there is no line.

    `kind` is ``same``, ``changed``, ``added`` or ``removed``; `why` explains what is not the same. `block` numbers the
    folded block that the row is part of, 0 for none.
    """

    left: int | None
    right: int | None
    kind: str
    before: tuple[Run, ...] = ()
    after: tuple[Run, ...] = ()
    why: str = ""
    block: int = 0


@dataclass(slots=True)
class _Text:
    """A text's lines as bytes, where each begins, and its runs."""

    data: bytes
    lines: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = self.data.split(b"\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()  # what stands behind the last newline is no line
        at = 0
        for line in self.lines:
            self.starts.append(at)
            at += len(line) + 1

    def line_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1


def rows(source: bytes, text: bytes, kept: Sequence[Kept]) -> list[Row]:
    """All lines of both texts, side by side."""
    before, after = _Text(source), _Text(text)
    stretches = [(0, len(source), 0)] if source == text else list(kept)
    pairs = _by_stretches(before, after, stretches) if stretches else _by_likeness(before, after)
    added = _added(after, stretches) if stretches else {}
    old, new = _highlighted(before, {}), _highlighted(after, added)
    found: list[Row] = []
    left = right = 0
    for a, b in [*pairs, (len(before.lines), len(after.lines))]:
        found += [Row(n + 1, None, "removed", before=old[n], why="Written anew on the right.") for n in range(left, a)]
        found += [Row(None, n + 1, "added", after=new[n], why=explained(after.lines[n])) for n in range(right, b)]
        left, right = a + 1, b + 1
        if a < len(before.lines):
            same = before.lines[a] == after.lines[b]
            why = "" if same else explained(after.lines[b])
            found.append(Row(a + 1, b + 1, "same" if same else "changed", old[a], new[b], why))
    return list(_folded(found))


def explained(line: bytes) -> str:
    """What an inserted or changed line does, in words; its own comment comes last."""
    text = line.decode("utf-8", "replace")
    code, _, comment = text.partition("// kesco: ")
    for pattern, words in _EXPLAINED:
        if match := re.search(pattern, code):
            said = words.format(*match.groups())
            return f"{said}: {comment.strip()}" if comment else f"{said}."
    return comment.strip() or "Inserted by kesco."


# ---- step 1 ------------------------------------------------------------------------------------------------


def _by_stretches(before: _Text, after: _Text, kept: Sequence[Kept]) -> list[tuple[int, int]]:
    """Lines that share a kept byte: each line in one pair, in the order of both texts."""
    pairs: list[tuple[int, int]] = []
    last = (-1, -1)
    for start, end, place in kept:
        first, behind = before.line_at(start), before.line_at(max(end - 1, start))
        for line in range(first, behind + 1):
            text, begin = before.lines[line], before.starts[line]
            own = begin + len(text) - len(text.lstrip())  # indentation may stay with a line that is put in front
            offset = max(start, own if text.strip() else begin)
            other = after.line_at(place + offset - start)
            ahead = offset < end and line > last[0] and other > last[1]
            # an empty line has but its newline in common with what stands there now
            if ahead and (text[offset - begin :].strip() or text == after.lines[other]):
                last = (line, other)
                pairs.append(last)
    return pairs


def _by_likeness(before: _Text, after: _Text) -> list[tuple[int, int]]:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, before.lines, after.lines, autojunk=False)
    return [(a + n, b + n) for a, b, size in matcher.get_matching_blocks() for n in range(size)]


def _added(after: _Text, kept: Sequence[Kept]) -> dict[int, list[tuple[int, int]]]:
    """For each line of the new text the stretches of it, in bytes, that are not of the old one."""
    found: dict[int, list[tuple[int, int]]] = {}
    ends = [0, *(place + end - start for start, end, place in kept)]
    begins = [*(place for _, _, place in kept), len(after.data)]
    for start, end in zip(ends, begins, strict=True):
        if start < end:
            for line in range(after.line_at(start), after.line_at(end - 1) + 1):
                base = after.starts[line]
                mark = max(start - base, 0), min(end - base, len(after.lines[line]))
                if after.lines[line][slice(*mark)].strip():
                    found.setdefault(line, []).append(mark)
    return found


# ---- step 2 ------------------------------------------------------------------------------------------------


def _highlighted(text: _Text, added: dict[int, list[tuple[int, int]]]) -> list[tuple[Run, ...]]:
    whole = text.data.decode("utf-8", "replace")
    found: list[tuple[Run, ...]] = []
    tokens = _tokens_by_line(whole)
    for number, line in enumerate(text.lines):
        marks = [
            (len(line[:a].decode("utf-8", "replace")), len(line[:b].decode("utf-8", "replace")))
            for a, b in added.get(number, ())
        ]
        found.append(tuple(_cut_up(next(tokens, []), marks)))
    return found


def _tokens_by_line(whole: str) -> Iterator[list[tuple[str, str]]]:
    """The tokens of each line, as class and text."""
    from pygments.lexers.c_like import CudaLexer

    line: list[tuple[str, str]] = []
    for _, kind, value in CudaLexer().get_tokens_unprocessed(whole):
        name = str(kind).removeprefix("Token.")
        token = next((short for long, short in _CLASSES if name.startswith(long)), "")
        first, *more = value.split("\n")
        line.append((token, first))
        for one in more:
            yield line
            line = [(token, one)]
    yield line


def _cut_up(tokens: Sequence[tuple[str, str]], marks: Sequence[tuple[int, int]]) -> Iterator[Run]:
    """Runs of one line: its tokens, cut where marked stretches begin and end; neighbours of one look are one run."""
    at = 0
    last: Run | None = None
    cuts = sorted({cut for mark in marks for cut in mark})
    for token, text in tokens:
        borders = [at, *(cut for cut in cuts if at < cut < at + len(text)), at + len(text)]
        for start, end in pairwise(borders):
            piece = text[start - at : end - at].removesuffix("\r").translate(PICTURES)
            run = Run(piece, token, any(a <= start < b for a, b in marks))
            if last is not None and (last.token, last.added) == (run.token, run.added):
                last = Run(last.text + piece, token, run.added)
                continue
            if last is not None and last.text:
                yield last
            last = run
        at += len(text)
    if last is not None and last.text:
        yield last


# ---- step 4 ------------------------------------------------------------------------------------------------


def _folded(found: Sequence[Row]) -> Iterator[Row]:
    block = 0
    for kind, group in groupby(found, key=lambda row: row.kind):
        part = list(group)
        # an unchanged line beside a changed one stays in sight, but for those at the file's ends
        first = CONTEXT if kind == "same" and part[0] is not found[0] else 0
        last = len(part) - (CONTEXT if kind == "same" and part[-1] is not found[-1] else 0)
        if kind not in ("same", "added") or last - first < LONG_BLOCK or len(part) == len(found):
            yield from part
            continue
        block += 1
        yield from part[:first]
        yield from (replace(one, block=block, why=_PROLOGUE if kind == "added" else "") for one in part[first:last])
        yield from part[last:]
