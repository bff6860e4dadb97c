"""What the CUDA runtime and the C and C++ library do, as data.

In: the name of a called function, and its number of parameters where one name has several signatures.
Out: a frozen ``CudaCall`` or ``HostCall`` that says what the call reads, writes, allocates and frees, which
argument is the stream, and whether the host waits; ``None`` for a function that the tables do not know.

It is a module of its own because these are facts about other people's interfaces, not decisions of kesco: a
reviewer checks ``resources/cuda_api.toml`` against NVIDIA's documentation line by line, and no stage says
``if name == "cudaMemcpy"``.

1. On first use a table is read with ``tomllib`` from the package's own data, once for the process.
2. Every field is checked against the one list of fields below: an unknown field, kind or type is a
   ``TableError``. The checks are written out because importing pydantic alone takes longer than all of this.
3. Names are looked up exactly; for the host library then by wildcard, and ``std::sin`` also as ``sin``.

How to read an entry, for all callers:

- Ask about declarations from CUDA's or the system's headers only: a user's function may bear any such name.
- ``None`` means opaque: the call may read and write all memory it can reach, and nothing may move across it.
  The kinds ``opaque``, ``graph`` and ``capture`` mean the same, whatever else their entry says.
- What an ``out`` argument receives, and what a call returns, is unknown, pointers included.
- A launch or host function has the effects of the function it runs, which are not in these tables.
- ``host_waits = "maybe"`` cuts both ways: never count on the wait, and never let its absence be seen.

It refuses to guess: no driver call (``cu*``) has an entry here, and those of libraries are in `library_table`;
``is_cuda_name`` tells them from ordinary host functions, so that a caller can say why they stay opaque.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

MEMORY_KINDS = ("alloc", "free", "copy", "memset", "prefetch", "advise")
ORDER_KINDS = (
    "stream_create",
    "stream_destroy",
    "event_create",
    "event_destroy",
    "event_record",
    "event_wait",
)
OTHER_KINDS = ("alias", "launch", "host_func", "sync", "event_sync", "query", "device", "capture", "graph", "opaque")
CUDA_KINDS = frozenset((*MEMORY_KINDS, *ORDER_KINDS, *OTHER_KINDS))
HOST_KINDS = frozenset(("pure", "io", "clock", "memory", "swap", "container", "exit", "thread"))
MEMORIES = frozenset(("device", "managed", "pinned", "mapped", "array", "async"))
DIRECTIONS = frozenset(("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice", "Default"))
HOST_WAITS = frozenset(("no", "stream", "device", "maybe"))
SHOWN = frozenset(("progress", "errors", "nothing"))
HEADERS = frozenset(("cuda_runtime_api.h", "cuda_runtime.h", "cuda_profiler_api.h"))
RESULT = -1  # the "argument" that is the call's result, in HostCall.allocates

_UNCERTAIN = frozenset(("opaque", "graph", "capture", "device"))  # their host_waits is "maybe" unless stated
_LIBRARIES = re.compile(
    r"(?:__)?cuda[A-Z]|cu[A-Z]\w"
    r"|(?:cublas|cufft|curand|cusparse|cusolver|cudnn|cutensor|nccl|nvrtc|nvml|nvjpeg|npp)[A-Za-z_]"
    r"|(?:cuda|thrust|cub|cutlass|cute|nvcuda|cooperative_groups)::"
)
_INLINE_NAMESPACES = re.compile(r"::(?:__cxx11|__1|_V2)(?=::)")


class TableError(ValueError):
    """A table in the package is malformed: a bug of kesco, never of its user."""


@dataclass(frozen=True, slots=True)
class CudaCall:
    """One signature of one CUDA runtime function; ``None`` stands for "no such argument".

    Numbers index the full list of parameters, default arguments included, as Clang lists them in a call.
    """

    name: str
    kind: str
    header: str = "cuda_runtime_api.h"  # where it is declared; the C++ templates are in cuda_runtime.h
    parameters: int | None = None  # how many it has; given only where the name has several signatures
    reads: tuple[int, ...] = ()  # memory (host or device) that the operation reads
    writes: tuple[int, ...] = ()  # memory (host or device) that the operation writes
    out: tuple[int, ...] = ()  # host variables the call fills in before it returns
    allocates: int | None = None  # the variable that receives the new pointer, stream or event
    memory: str | None = None  # what kind of memory an alloc gives
    beside: int | None = None  # bytes of the same struct, behind the new pointer, that it fills in, too
    aliases: int | None = None  # the pointer that an alias gives a second name, in what it "allocates"
    frees: int | None = None  # the pointer that is freed
    size: int | None = None  # the number of bytes, where one argument is that
    direction: int | None = None  # the cudaMemcpyKind
    fixed_direction: str | None = None  # the direction where no argument says it, or the argument's default
    symbol: int | None = None  # the argument that names a __device__ variable, rather than pointing to memory
    stream: int | None = None  # the cudaStream_t; 0 there is the legacy default stream
    implicit_stream: bool = False  # works on the legacy default stream, without an argument saying so
    host_waits: str = "no"  # until when the call keeps the host: no, stream, device, maybe
    to_host_waits: bool = False  # a copy that waits after all if DeviceToHost, unless to managed memory
    async_form: str | None = None  # the same with a stream as one more argument
    defaults: tuple[str, ...] = ()  # what its last arguments, before a stream, are where left out
    pitched: tuple[int, ...] = ()  # memory in rows: the next argument is the bytes from one row to the next
    width: int | None = None  # bytes of a row that are touched
    rows: int | None = None
    event: int | None = None  # the cudaEvent_t
    flags: int | None = None  # creation and other flags that change the meaning
    function: int | None = None  # the kernel or host function
    arguments: int | None = None  # what the function is given: void** of a kernel, void* of a host function
    grid: int | None = None
    block: int | None = None
    shared: int | None = None  # dynamic shared memory, bytes
    descriptor: int | None = None  # a struct that holds what would otherwise be arguments
    shows: str = "progress"  # what a query may tell: how far the device is, errors that it found, or nothing of it
    since: str | None = None  # first CUDA version that has this signature, if after 12.0
    removed: str | None = None  # first CUDA version that lacks it
    note: str | None = None  # what is surprising about it
    overloads: tuple[CudaCall, ...] = ()  # its other signatures

    def waits(self, direction: str | None = None) -> str:
        """Until when the call keeps the host (no, stream, device or maybe), given the copy's direction."""
        if self.to_host_waits and direction == "DeviceToHost":
            return "stream"
        return self.host_waits


@dataclass(frozen=True, slots=True)
class HostCall:
    """One function of the C or C++ library, or all that match a wildcard; it touches no device state."""

    name: str  # as in the table, the wildcard included
    kind: str
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    reads_from: int | None = None  # every argument from here on may be read through
    writes_from: int | None = None  # every argument from here on may be written through
    out: tuple[int, ...] = ()  # host variables the call fills in; may be null
    allocates: int | None = None  # the variable that receives new host memory, or RESULT
    frees: int | None = None
    callbacks: tuple[int, ...] = ()  # functions it calls back: if given, the call is as opaque as they are
    arity: tuple[int, ...] = ()  # the numbers of arguments the entry speaks of; empty: any
    counts: bool = False  # integers whose address it is given may be written (``%n``)


def cuda_call(name: str, parameters: int | None = None) -> CudaCall | None:
    """The entry of a CUDA runtime function, or ``None`` if it is unknown and hence opaque.

    ``parameters`` is how many parameters the called declaration has. Where the table knows several signatures
    it picks one, and a number that it does not know gives ``None``; without it the answer is CUDA 13's in C.
    """
    call = _cuda_table().get(name.removeprefix("::"))
    if call is None or parameters is None or call.parameters in (None, parameters):
        return call
    return next((other for other in call.overloads if other.parameters == parameters), None)


@cache
def host_call(qualified_name: str, arguments: int | None = None) -> HostCall | None:
    """The entry of a C or C++ library function, or ``None`` if it is unknown and hence opaque.

    The name carries no template arguments; inline namespaces (``__cxx11``, ``_V2``, ``__1``) are taken out.
    ``arguments`` is how many the call has: an entry that speaks of other overloads only is then ``None``.
    """
    name = _INLINE_NAMESPACES.sub("", qualified_name).removeprefix("::")
    exact, wildcards = _host_table()
    call = exact.get(name) or next((w for w in wildcards if name.startswith(w.name[:-1])), None)
    if call is None:
        for prefix in ("std::", "__builtin_"):
            if name.startswith(prefix):
                call = exact.get(name.removeprefix(prefix))
    if call is not None and call.arity and arguments is not None and arguments not in call.arity:
        return None
    return call


def is_cuda_name(name: str) -> bool:
    """Whether a name belongs to CUDA: runtime, driver or libraries. What ``cuda_call`` lacks is opaque."""
    return _LIBRARIES.match(name.removeprefix("::")) is not None


def cuda_calls() -> Iterator[CudaCall]:
    """Every signature in the table of CUDA calls, overloads included, in the table's order."""
    for call in _cuda_table().values():
        yield call
        yield from call.overloads


def host_calls() -> Iterator[HostCall]:
    """Every entry in the table of host calls: the exact names first, then the wildcards, longest first."""
    exact, wildcards = _host_table()
    yield from exact.values()
    yield from wildcards


def parse_cuda_table(text: str) -> dict[str, CudaCall]:
    """Read and check a table of CUDA calls."""
    return {name: _cuda_entry(name, table) for name, table in tomllib.loads(text).items()}


def parse_host_table(text: str) -> dict[str, HostCall]:
    """Read and check a table of host calls; the keys are the names as written, wildcards included."""
    document = tomllib.loads(text)
    groups = document.pop("group", [])
    if document:
        raise TableError(f"host table: unknown key {next(iter(document))!r}")
    calls: dict[str, HostCall] = {}
    for group in groups:
        names, suffixes = group.pop("names", []), group.pop("suffixes", [""])
        if not names:
            raise TableError("host table: a group without names")
        entry = HostCall(name="", **_checked(group, _HOST_FIELDS, f"group of {names[0]}"))
        for name in (stem + suffix for stem in names for suffix in suffixes):
            if name in calls or "*" in name[:-1]:
                raise TableError(f"{name}: listed twice, or a * that is not at the end")
            calls[name] = replace(entry, name=name)
    return calls


@cache
def _cuda_table() -> dict[str, CudaCall]:
    return parse_cuda_table(_resource("cuda_api.toml"))


@cache
def _host_table() -> tuple[dict[str, HostCall], tuple[HostCall, ...]]:
    calls = parse_host_table(_resource("host_api.toml"))
    wildcards = [call for name, call in calls.items() if name.endswith("*")]
    exact = {name: call for name, call in calls.items() if not name.endswith("*")}
    return exact, tuple(sorted(wildcards, key=lambda call: (-len(call.name), call.name)))


def _resource(name: str) -> str:
    return files("kesco.frontend").joinpath("resources", name).read_text(encoding="utf-8")


def _cuda_entry(name: str, table: Mapping[str, Any]) -> CudaCall:
    """One function: its own signature, then its overloads, which inherit all that is not about arguments."""
    fields = _checked({k: v for k, v in table.items() if k != "overloads"}, _CUDA_FIELDS, name)
    fields.setdefault("host_waits", "maybe" if fields["kind"] in _UNCERTAIN else "no")
    inherited = {k: v for k, v in fields.items() if k in _INHERITED}
    others = []
    for overload in table.get("overloads", []):
        own = _checked({"kind": fields["kind"], **overload}, _CUDA_FIELDS, name)
        others.append(_consistent(CudaCall(name=name, **{**inherited, **own})))
    call = _consistent(CudaCall(name=name, **fields, overloads=tuple(others)))
    signatures = [call.parameters, *(other.parameters for other in others)]
    if others and (None in signatures or len(set(signatures)) != len(signatures)):
        raise TableError(f"{name}: overloads are told apart by 'parameters', different in each")
    return call


def _consistent(call: CudaCall) -> CudaCall:
    """Refuse an entry whose fields contradict its kind, or that lacks the argument its kind is about."""
    wrong = [field for field in _NEEDED.get(call.kind, ()) if getattr(call, field) in (None, ())]
    if call.stream is not None and call.implicit_stream:
        wrong.append("implicit_stream")
    if (call.memory is None) == (call.kind == "alloc"):
        wrong.append("memory")
    if call.kind in ("copy", "memset") and call.stream is None and not call.implicit_stream:
        wrong.append("stream")
    if call.kind == "copy" and call.direction is None and call.fixed_direction is None:
        wrong.append("direction")
    if wrong:
        raise TableError(f"{call.name}: kind {call.kind!r} does not go with {', '.join(wrong)} as given")
    return call


_Check = Callable[[Any], bool]


def _checked(table: Mapping[str, Any], known: Mapping[str, _Check], where: str) -> dict[str, Any]:
    """The fields of one table, lists made tuples; an unknown field, no kind or a bad value is an error."""
    if "kind" not in table:
        raise TableError(f"{where}: no kind")
    for field, value in table.items():
        if field not in known:
            raise TableError(f"{where}: unknown field {field!r}")
        if not known[field](value):
            raise TableError(f"{where}: bad value {value!r} for {field!r}")
    return {field: tuple(value) if isinstance(value, list) else value for field, value in table.items()}


def _index(value: Any) -> bool:
    return type(value) is int and value >= 0


def _index_or_result(value: Any) -> bool:
    return type(value) is int and value >= RESULT


def _indexes(value: Any) -> bool:
    return type(value) is list and all(map(_index, value)) and len(set(value)) == len(value)


def _flag(value: Any) -> bool:
    return type(value) is bool


def _text(value: Any) -> bool:
    return type(value) is str and value != "" and "\n" not in value


def _texts(value: Any) -> bool:
    return type(value) is list and bool(value) and all(map(_text, value))


def _version(value: Any) -> bool:
    return type(value) is str and re.fullmatch(r"\d+\.\d+", value) is not None


def _one_of(values: frozenset[str]) -> _Check:
    return lambda value: type(value) is str and value in values


_CUDA_FIELDS: dict[str, _Check] = {
    "kind": _one_of(CUDA_KINDS),
    "header": _one_of(HEADERS),
    "memory": _one_of(MEMORIES),
    "fixed_direction": _one_of(DIRECTIONS),
    "host_waits": _one_of(HOST_WAITS),
    "shows": _one_of(SHOWN),
    "since": _version,
    "removed": _version,
    "async_form": _text,
    "note": _text,
    "descriptor": _index,
    "defaults": _texts,
    **dict.fromkeys(("reads", "writes", "out", "pitched"), _indexes),
    **dict.fromkeys(("implicit_stream", "to_host_waits"), _flag),
    **dict.fromkeys(("parameters", "allocates", "aliases", "frees", "size", "direction", "symbol", "stream"), _index),
    **dict.fromkeys(("width", "rows", "beside"), _index),
    **dict.fromkeys(("event", "flags", "function", "arguments", "grid", "block", "shared"), _index),
}
_HOST_FIELDS: dict[str, _Check] = {
    "kind": _one_of(HOST_KINDS),
    "allocates": _index_or_result,
    **dict.fromkeys(("reads", "writes", "out", "callbacks", "arity"), _indexes),
    **dict.fromkeys(("reads_from", "writes_from", "frees"), _index),
    "counts": _flag,
}
_INHERITED = frozenset(("kind", "header", "memory", "implicit_stream", "host_waits", "note"))
_NEEDED: dict[str, tuple[str, ...]] = {
    "alloc": ("allocates",),
    "alias": ("allocates", "aliases"),
    "free": ("frees",),
    "copy": ("reads", "writes"),
    "memset": ("writes",),
    "prefetch": ("reads", "stream"),
    "launch": ("function", "arguments", "stream"),
    "host_func": ("function", "arguments", "stream"),
    "stream_create": ("allocates",),
    "stream_destroy": ("stream",),
    "event_create": ("allocates",),
    "event_destroy": ("event",),
    "event_record": ("event", "stream"),
    "event_wait": ("event", "stream"),
    "event_sync": ("event",),
}
