"""What a compiled program does on the device, in what order and where: ``described(text)`` → `Planned`.

In: a text that kesco wrote, or left as it was. Out: a line for each operation, wait and record, their counts, and a
digest. It is read from the text alone, so that the plan of any version of kesco can be described, and compared with
today's: figures are tied to the digest of the plan that gave them (`figures`), and `regress` compares with a baseline.

1. The prologue, comments, strings and preprocessor lines are blanked: how kesco says something is not what is done.
2. Launches and the calls that give the device work, order it or wait for it are listed as they stand, each as deep as
it is nested; not where a program asks, as it runs, whether one stream is faster. 3. Streams and events are numbered as
they appear, since which is which makes no difference; where streams differ in priority, that is said at the end.

It refuses nothing: what it does not know is not in the description.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kesco.emit.prologue import END, MARK

DEFAULT = "the default stream"
_BLANK = re.compile(
    r'//(?:\\\n|[^\n])*|/\*.*?\*/|R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
_CALL = re.compile(
    r"\b(?:(?P<kernel>[A-Za-z_][\w:]*)(?:\s*<[^<>;{}()]*>)?\s*<<<|(?P<name>cuda[A-Z]\w*|kesco_\w+)\s*\()|(?P<brace>[{}])"
)
_WORK = re.compile(
    r"cudaMem(?:cpy|set|Prefetch)\w*|cudaMallocAsync|cudaFreeAsync|cudaLaunch\w*|cudaGraphLaunch"
    r"|kesco_(?:copy\w*|send|fetch|memset|prefetch|malloc|free)"
)
_COPY = re.compile(r"cudaMemcpy\w*|kesco_(?:copy\w*|send|fetch)")
_WAIT = re.compile(r"cuda(?:Device|Thread|Stream|Event)Synchronize")
_EVENTS = ("cudaEventRecord", "cudaStreamWaitEvent")
_OURS = re.compile(r"kesco_(?!streams$|context$|stretch$|paced?$)\w+")
_STREAM_AT = {
    "cudaMemcpyAsync": 4, "cudaMemcpy2DAsync": 7, "cudaMemsetAsync": 3, "cudaMemset2DAsync": 5,
    "cudaMemcpyToSymbolAsync": 5, "cudaMemcpyFromSymbolAsync": 5, "cudaMallocAsync": 2, "cudaFreeAsync": 1,
    "cudaLaunchKernel": 5, "cudaGraphLaunch": 1, "<<<": 3,
}  # fmt: skip
_LEGACY = ("0", "nullptr", "NULL", "cudaStreamLegacy")
_NUMBERED = re.compile(r"\w+->(stream|done|part|tail)\[([^][]*)\]")
_STREAMS = re.compile(r"cudaStream_t stream\[(\d+)\] = \{\};")
_PRIORITIES = re.compile(r"const (?:bool urgent|int rank)\[\d+\] = \{([\w, ]*)\};")


@dataclass(frozen=True, slots=True)
class Planned:
    """The lines of a plan, and what they come to; `default` are the operations on the default stream."""

    lines: tuple[str, ...]
    streams: int
    operations: int
    default: tuple[str, ...]
    waits: int
    moved: int
    graphs: int

    @property
    def digest(self) -> str:
        """The same for equal plans."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return (
            f"{self.digest}: {self.operations} operations, {len(self.default)} of them on the default stream; "
            f"{self.streams} streams, {self.waits} waits, {self.moved} copies on streams, {self.graphs} graphs"
        )


def together(parts: Sequence[tuple[str, Planned]]) -> Planned:
    """The plan of several programs in one, each with what it is called there."""
    return Planned(
        tuple(line for name, part in parts for line in (name, *part.lines)),
        sum(part.streams for _, part in parts),
        sum(part.operations for _, part in parts),
        tuple(one for _, part in parts for one in part.default),
        sum(part.waits for _, part in parts),
        sum(part.moved for _, part in parts),
        sum(part.graphs for _, part in parts),
    )


def described(source: bytes) -> Planned:
    """The plan of a program."""
    text = source.decode("utf-8", "replace").replace("\r\n", "\n")
    start, end = text.find(MARK), text.find(END)
    prologue = text[start:end] if 0 <= start < end else ""
    reading = _Reading()
    reading.read(_BLANK.sub(lambda m: " " * len(m[0]), text[:start] + text[end:] if prologue else text))
    streams = int(m[1]) if (m := _STREAMS.search(prologue)) else 1
    priorities = m[1].split(", ") if (m := _PRIORITIES.search(prologue)) else []
    of = {reading.numbers.get(("stream", str(number))): value for number, value in enumerate(priorities)}
    reading.lines += (f"priority of stream {n}: {of[n]}" for n in sorted(n for n in of if n is not None))
    counts = reading.counts
    return Planned(tuple(reading.lines), streams, counts["work"], tuple(reading.default), counts["wait"],
                   counts["moved"], counts["graph"])  # fmt: skip


@dataclass(slots=True)
class _Reading:
    """Steps 2 and 3."""

    lines: list[str] = field(default_factory=list)
    default: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def read(self, text: str) -> None:
        depth = 0
        for match in _CALL.finditer(text):
            if match["brace"]:
                depth += 1 if match["brace"] == "{" else -1
                continue
            kernel, name = match["kernel"], match["name"] or "<<<"
            given = tuple(_arguments(text, match.end()))
            works = kernel or _WORK.fullmatch(name)
            if line := self._work(kernel or name, name, given) if works else self._order(name, given):
                self.lines.append(f"{' ' * depth}{line}")

    def _work(self, label: str, name: str, given: tuple[str, ...]) -> str:
        stream = self._stream(name, given)
        self.counts["work"] += 1
        if stream == DEFAULT:
            self.default.append(label)
        elif _COPY.fullmatch(name):
            self.counts["moved"] += 1
        return f"{label} on {stream}"

    def _stream(self, name: str, given: tuple[str, ...]) -> str:
        own = next(
            (found for one in reversed(given) if (found := _NUMBERED.search(one)) and found[1] == "stream"), None
        )
        if own is not None:
            return self._numbered(own)
        at = _STREAM_AT.get(name, len(given))
        return given[at] if at < len(given) and given[at] not in _LEGACY else DEFAULT

    def _order(self, name: str, given: tuple[str, ...]) -> str:
        """A line for what orders work or waits for it, or looks after it in kesco's manner; else nothing."""
        ours = _OURS.fullmatch(name) is not None
        if not (ours or _WAIT.fullmatch(name) or name in _EVENTS):
            return ""
        self.counts["wait"] += name == "cudaStreamWaitEvent"
        self.counts["graph"] += name.startswith("kesco_replay")
        numbered = (_NUMBERED.search(one) or one for one in given)
        said = (one if isinstance(one, str) else self._numbered(one) for one in numbered)
        return " ".join((name, *(one for one in said if " " in one or (ours and one.isdigit()))))

    def _numbered(self, found: re.Match[str]) -> str:
        kind, number = found[1], re.sub(r"\s", "", found[2])
        if not number.isdigit():
            return f"{kind} {number}"
        return f"{kind} {self.numbers.setdefault((kind, number), sum(k == kind for k, _ in self.numbers))}"


def _arguments(text: str, at: int) -> Iterator[str]:
    """The arguments from there to the bracket that closes them."""
    depth, start = 0, at
    while at < len(text):
        if text[at] in "([{":
            depth += 1
        elif text[at] in ")]}" and depth:
            depth -= 1
        elif depth == 0 and (text[at] in ",)" or text.startswith(">>>", at)):
            if text[start:at].strip():
                yield " ".join(text[start:at].split())
            if text[at] != ",":
                return
            start = at + 1
        at += 1
