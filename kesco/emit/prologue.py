"""The prologue: streams and events of the file, from a template.

In: how many of each, and the macros that are defined. Out: text. The verifier compares the prologue it finds with this
text byte by byte, so that it may rely on what the names in it mean; macros that would change the text, or the standard
headers that it includes, are put away in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from kesco.emit.names import defined_in, in_the_way

if TYPE_CHECKING:
    from jinja2 import Template

MARK = "// ---- kesco: streams and events of this file"
END = "// ---- kesco: end"
_FUNCTIONS = (
    r"kesco_(?:streams|streams_if_distinct|stretch|pace|paced|context|prefetch|replay\w*|graph_of|fills?|memset|copy\w*|reach|settle"
    r"|send|sent|fetch|fetched|malloc|freed?|mark|hold|marking|queues|beside|current"
    r"|turns?|lane|turned|others|extent|place|take|give|pin|trip\d*|blas|main|own|owned|place_of|add|later|wait_here|take_here|give_here)"
)
_CALLED = re.compile(rf"\b(?:{_FUNCTIONS}\s*\(|Kesco(?:Leave|On|Later)\b)")
_TYPES = (
    "Kesco(?:Event|Streams|Stretch|Pace|Beside|Pages|Device|Host|Both|Graph|Width|Replay|Ring|Relay|Sender|Fetches|Reach"
    "|Memory|Order|Leave|Marks|On|Own|Later|Turns|Tried|Pins|Ranges|Main|Scratch)"
)
OUR_NAMES = re.compile(rf"\b(?:{_TYPES}|{_FUNCTIONS})\b".encode())
STAND_IN = (
    "namespace {{ struct KescoMarks {{}}; struct KescoStreams {{ cudaStream_t stream[{streams}]; "
    "cudaEvent_t done[{events}]; cudaEvent_t tail[{streams}]; KescoMarks part[{marks}]; }}; "
    "{closed}{blas}void kesco_mark(KescoMarks&, cudaStream_t); void kesco_hold(KescoMarks&, int, cudaStream_t); "
    "KescoStreams& kesco_streams(); struct KescoLeave {{ {leave} }}; "
    "cudaStream_t kesco_current(); void KescoOn(cudaStream_t); void KescoLater(cudaStream_t); "
    "KescoStreams* kesco_stretch(KescoStreams*, int, bool = true); "
    "KescoStreams* kesco_pace(KescoStreams*, int); "
    "template <typename... Kesco> KescoStreams* kesco_paced(int, const Kesco*...); "
    "enum KescoPages {{ KescoDevice, KescoHost, KescoBoth }}; "
    "void kesco_prefetch(const KescoStreams*, const volatile void*, cudaStream_t, KescoPages = KescoDevice); "
    "cudaError_t kesco_memset(void*, int, size_t, cudaStream_t); "
    "cudaError_t kesco_copy(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t, bool = false); "
    "cudaError_t kesco_wait_here(); "
    "template <typename Kesco> cudaError_t kesco_take_here(Kesco**, decltype(sizeof(0))); "
    "cudaError_t kesco_give_here(const void*); "
    "cudaError_t kesco_copy_here(void*, const void*, size_t, cudaMemcpyKind); "
    "cudaError_t kesco_copy_2d(void*, size_t, const void*, size_t, size_t, size_t, cudaMemcpyKind, cudaStream_t, "
    "bool = false); template <typename Kesco> cudaError_t kesco_copy_to_symbol(const Kesco&, const void*, size_t, "
    "size_t, cudaMemcpyKind, cudaStream_t, bool = false); template <typename Kesco> cudaError_t "
    "kesco_copy_from_symbol(void*, const Kesco&, size_t, size_t, cudaMemcpyKind, cudaStream_t, bool = false); "
    "cudaError_t kesco_send(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t, bool = false); "
    "void kesco_sent(); "
    "cudaError_t kesco_fetch(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t, bool = false); "
    "cudaError_t kesco_fetched(); "
    "template <typename Kesco> cudaError_t kesco_malloc(Kesco**, decltype(sizeof(0)), cudaStream_t); "
    "void kesco_free(const void*, cudaStream_t); cudaError_t kesco_freed(const void*); "
    "struct KescoTurns {{}}; template <typename... Kesco> KescoTurns kesco_turns(KescoStreams*, const Kesco*...); "
    "template <typename... Kesco> KescoStreams* kesco_turn(KescoTurns&, Kesco...); "
    "KescoStreams* kesco_lane(KescoTurns&, unsigned long long); void kesco_turned(KescoTurns&); "
    "template <typename Kesco> void kesco_place(KescoTurns&, int, Kesco*); "
    "template <typename Kesco> cudaError_t kesco_take(KescoTurns&, int, Kesco**, decltype(sizeof(0))); "
    "cudaError_t kesco_give(KescoTurns&, const void*); "
    "template <typename... Kesco> void kesco_pin(KescoTurns&, const Kesco&...); "
    "template <typename... Kesco> bool kesco_replay(KescoStreams*&, int, cudaStream_t, const Kesco&...); "
    "template <typename... Kesco> bool kesco_replay_alone(KescoStreams*&, int, cudaStream_t, const Kesco&...); "
    "template <typename Kesco, typename... Values> Kesco* kesco_own(Kesco*, Values...); "
    "template <typename Kesco> Kesco* kesco_owned(Kesco*); "
    "template <typename... Kesco> KescoStreams& kesco_streams_if_distinct(const Kesco*...); }}"
)
_EVENTS = (
    "struct KescoEvent { cudaEvent_t event; }; cudaError_t cudaEventRecord(KescoEvent, cudaStream_t); "
    "cudaError_t cudaStreamWaitEvent(cudaStream_t, KescoEvent, unsigned); "
)
EMPTY = STAND_IN.format(streams=1, events=1, marks=1, leave="", blas="", closed="")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a prologue has beside streams and events; `stretches`, `replays`, `marks` and `paces` are how
    many there are.

    `urgent` are the streams that get the highest priority, ascending; or `ranks` has one for each, 0 for the highest.
    """

    guards: bool = False
    prefetches: bool = False
    copies: bool = False
    stretches: int = 0
    replays: int = 0
    urgent: tuple[int, ...] = ()
    memory: bool = False
    sends: bool = False
    fetches: bool = False
    ranks: tuple[int, ...] = ()
    leaves: bool = False
    planes: bool = False
    to_symbols: bool = False
    from_symbols: bool = False
    marks: int = 0
    queues: bool = False
    fills: bool = False
    calls: bool = False
    turns: int = 0
    paces: int = 0
    pins: bool = False
    blas: bool = False
    closed: bool = False
    scratch: bool = False
    later: bool = False
    waits: bool = False
    own: bool = False


def _text_of(name: str) -> str:
    return files("kesco.emit").joinpath(f"templates/{name}").read_text("utf-8")


@cache
def _template(name: str = "prologue") -> Template:
    """A template, compiled once: it is written, and then written again to compare with."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: _text_of(f"{name}.cu.j2")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def prologue(streams: int, events: int, parts: Parts, macros: Collection[str] = ()) -> str:
    """The text that defines ``KescoStreams`` and ``kesco_streams()`` where these `macros` are defined."""
    plain = _written(streams, events, parts, ())
    away = in_the_way(plain, macros)
    return _written(streams, events, parts, away) if away else plain


def _written(streams: int, events: int, parts: Parts, macros: Collection[str]) -> str:
    flags = ("true" if stream in parts.urgent else "false" for stream in range(streams))
    values = asdict(parts) | {
        "urgent": ", ".join(flags) if parts.urgent else "",
        "ranks": ", ".join(map(str, parts.ranks)),
    }
    return _template().render(streams=streams, events=events, macros=macros, **values)


def batches_text(batches: int, calls: Collection[str], macros: Collection[str], *, streams: bool) -> str:
    """The text that defines ``kesco_batch()`` and what belongs to it (`emit.batches`)."""
    return _template("batches").render(batches=batches, calls=calls, macros=macros, streams=streams)


def deferred_text(macros: Collection[str]) -> str:
    """The text that defines ``KescoDeferred`` (`emit.deferred`)."""
    return _template("deferred").render(macros=macros)


_PUT_AWAY = re.compile(r'^#pragma push_macro\("(\w+)"\)$', re.MULTILINE)
_SIZES = re.compile(r"cudaStream_t stream\[(\d+)\] = \{\};\n  KescoEvent done\[(\d+)\] = \{\};")
_STRETCHES = re.compile(r"KescoStretch stretches\[(\d+)\];")
_URGENT = re.compile(r"const bool urgent\[\d+\] = \{([a-z, ]*)\};")
_RANKS = re.compile(r"const int rank\[\d+\] = \{([\d, ]*)\};")
_REPLAYS = re.compile(r"KescoReplay places\[(\d+)\];")
_TURNS = re.compile(r"static constexpr int most = (\d+);  // in flight")
_PACES = re.compile(r"= new KescoPace\[(\d+)\];")
_MARKS = re.compile(r"KescoMarks part\[(\d+)\];")


def is_genuine(text: bytes) -> bool:
    """Whether a file's names in kesco's manner mean what `prologue` says: its own prologue, once, or none at all."""
    normal = text.replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape")
    start, end = normal.find(MARK), normal.find(END)
    if start < 0:
        return _CALLED.search(normal) is None
    if end < start or normal.count(MARK) != 1:
        return False
    written = normal[start : normal.find("\n", end) + 1]
    sizes = _SIZES.search(written)
    if sizes is None:
        return False
    away = _PUT_AWAY.findall(written)
    if set(in_the_way(written, defined_in(normal))) - {*away}:
        return False
    numbers = (_STRETCHES, _REPLAYS, _MARKS, _PACES, _TURNS)
    stretches, replays, marks, paces, turns = (int(m[1]) if (m := p.search(written)) else 0 for p in numbers)
    flags = m[1].split(", ") if (m := _URGENT.search(written)) else []
    urgent = tuple(stream for stream, flag in enumerate(flags) if flag == "true")
    ranks = tuple(map(int, m[1].split(", "))) if (m := _RANKS.search(written)) and m[1] else ()
    guards, prefetches, copies = (f"kesco_{n}(" in written for n in ("streams_if_distinct", "prefetch", "copy"))
    memory, sends, fetches, leaves = (f"Kesco{n}" in written for n in ("Memory", "Sender", "Fetches", "Leave"))
    planes, to, of = (f"kesco_copy_{n}(" in written for n in ("2d", "to_symbol", "from_symbol"))
    parts = Parts(
        guards, prefetches, copies, stretches, replays, urgent, memory, sends, fetches, ranks, leaves, planes,
        to, of, marks, "kesco_queues" in written, "kesco_memset(" in written,
        "KescoOn" in written, turns, paces, "KescoPins" in written, "kesco_blas(" in written,
        "KescoMain" in written, "KescoScratch" in written, "KescoLater" in written,
        "kesco_wait_here" in written, "KescoOwn" in written,
    )  # fmt: skip
    return written == _written(int(sizes[1]), int(sizes[2]), parts, away)


def queues() -> str:
    """What asks for more work queues, once in a process: before its first CUDA call."""
    return _text_of("queues.cu.j2").rstrip("\n")


def without_queues(text: bytes) -> tuple[bytes, bool]:
    """The text with empty lines where its genuine prologue asks for work queues, and whether it does."""
    asking = next((a for a in (queues().encode(), queues().replace("\n", "\r\n").encode()) if a in text), None)
    if asking is None or not is_genuine(text):
        return text, False
    return text.replace(asking, b"\n" * asking.count(b"\n"), 1), True


def is_ours(name: str) -> bool:
    """Whether a function has a name that only the prologue's may have."""
    return re.fullmatch(_FUNCTIONS, name.rpartition("::")[2]) is not None


def streams_in(text: bytes) -> int:
    """How many streams a file's prologue has room for; 1 without one: that of the serial program."""
    found = _SIZES.search(text.replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape"))
    return int(found[1]) if found else 1


def sizes_in(text: bytes) -> tuple[int, int]:
    """How many streams and events a file's prologue has; none without one."""
    found = _SIZES.search(text.replace(b"\r\n", b"\n").decode("utf-8", "surrogateescape"))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def replays_in(text: bytes) -> int:
    """For how many replays a file's genuine prologue has room."""
    found = _REPLAYS.search(text.decode("utf-8", "surrogateescape"))
    return int(found[1]) if found else 0


def to_parse(text: bytes) -> bytes:
    """The text of a file as it is to be read: with the `stand_in` where it has a genuine prologue."""
    return stand_in(text) if MARK.encode() in text and is_genuine(text) else text


def with_events(text: bytes) -> bytes:
    """The text for who follows what is executed, with kesco's events told from others, as they are in the prologue.

    The same lines, but not columns.
    """
    found = stand_in(text, runs=True)
    for name in (b"done", b"tail"):
        found = found.replace(b"cudaEvent_t %s[" % name, b"KescoEvent %s[" % name, 1)
    return found.replace(b"struct KescoStreams {", _EVENTS.encode() + b"struct KescoStreams {", 1)


def stand_in(text: bytes, *, runs: bool = False) -> bytes:
    """The text with its genuine prologue replaced by bare declarations of the same length and the same lines.

    What the prologue says is known already, since it was compared byte by byte; what it includes need not be parsed
    again. `runs`: it is for who follows what is executed, destructors included.
    """
    start, end = text.find(MARK.encode()), text.find(END.encode())
    if start < 0 or end < start:
        return text
    written = text[start:end]
    sizes = _SIZES.search(written.replace(b"\r\n", b"\n").decode())
    if sizes is None:
        return text
    marks = m[1] if (m := _MARKS.search(written.decode("utf-8", "replace"))) else 1
    leave = "bool early = true; ~KescoLeave();" if runs else "bool early;"
    closed = "struct KescoMain {}; " if b"KescoMain" in written else ""
    blas = "void kesco_blas(cublasHandle_t, cudaStream_t); " if b"kesco_blas(" in written else ""
    own = {"leave": leave, "blas": blas, "closed": closed}
    short = STAND_IN.format(streams=sizes[1], events=sizes[2], marks=marks, **own).encode()
    lines = written.count(b"\n")
    return text[:start] + short + b" " * (len(written) - len(short) - lines) + b"\n" * lines + text[end:]
