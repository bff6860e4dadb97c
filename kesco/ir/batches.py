"""Loops whose launches are given to the device many at a time, as CUDA graphs.

A *batch* is what launches on the default stream, one behind the other, become: they are captured, and the graph is
launched on the default stream. Nothing of the host's may come in between that could tell: in front of it stands
`ISSUE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kesco.ir.replay import ENDS, STATUS
from kesco.ir.transfers import SETS
from kesco.ir.tree import Call, Expr, Name, Select, Subscript
from kesco.ir.walking import bare
from kesco.source import Span

STREAM, TRIP, ISSUE = "kesco_batch", "kesco_batch_trip", "kesco_batch_flush"
"""The stream of such a launch; the beginning of a trip; what gives the device all that was captured."""
CALLS = {
    "cudaMemset": "kesco_batch_memset",
    "cudaMemsetAsync": "kesco_batch_memset_async",
    "cudaMemcpy": "kesco_batch_copy",
}
"""Calls that may be late, too, and what makes them so: memsets, and copies from the device to the device."""
_CURRENT = "kesco_current"
GUARD = "KescoBatch"
"""The class of the object that is there while launches may be captured."""
END = "end"
"""Its member that ends that."""

_C = frozenset(
    """abs fabs fabsf labs llabs sqrt sqrtf cbrt hypot exp expf exp2 expm1 log logf log2 log10 log1p pow powf sin sinf
    cos cosf tan tanf asin acos atan atan2 atan2f sinh cosh tanh floor floorf ceil ceilf round roundf trunc lround rint
    fmod fmodf fmin fmax fminf fmaxf isnan isinf isfinite div ldiv __assert_fail printf fprintf puts fputs putchar fputc
    fflush perror snprintf sprintf strlen strcmp cudaGetErrorString cudaGetErrorName""".split()
)
_STD = _C | frozenset(
    """min max swap exchange move forward clamp size data begin end cbegin cend get addressof as_const operator<< endl
    setw setprecision fixed scientific flush to_string operator+ operator== operator!= make_pair make_tuple""".split()
)
_MEMBERS = frozenset(
    """size length data begin end cbegin cend empty front back at get count first second c_str operator[] operator*
    operator-> operator++ operator-- operator!= operator== operator+ operator- operator+= operator-= operator<< str
    setprecision precision width basic_string basic_ostringstream""".split()
)
_CLASSES = frozenset(
    """vector array basic_string basic_string_view pair tuple unique_ptr initializer_list span basic_ostream ios_base
    basic_ios basic_ostringstream __normal_iterator allocator""".split()
)
_TOLD = frozenset("runtime_error logic_error system_error invalid_argument what".split())


def is_quiet_name(name: str) -> bool:
    """Whether a function of the libraries touches what it is given, or writes, and neither waits nor calls anything.

    The same names in other namespaces (Thrust's) are others.
    """
    parts = [part for part in name.split("::") if part not in ("", "__cxx11")]
    if len(parts) < 2:
        return "".join(parts) in _C
    if parts[0] not in ("std", "__gnu_cxx"):
        return False
    return parts[1] in _STD if len(parts) == 2 else parts[-2] in _CLASSES and parts[-1] in _MEMBERS | _CLASSES


def is_last_word(name: str) -> bool:
    """Whether it may be called on a way out, of a function or the process: to say why, or to leave."""
    last, known = name.rpartition("::")[2], name.startswith("std::") or "::" not in name
    return is_quiet_name(name) or (known and last in STATUS | ENDS | _TOLD)


GIVES = frozenset({"std::swap", "std::exchange"})
"""Those that run what is declared for the type of their arguments."""
CONSTRUCTED = frozenset(
    {"dim3"} | {f"{kind}{n}" for kind in ("int", "uint", "float", "double", "char", "uchar", "short", "ushort", "long",
                                          "ulong", "longlong", "ulonglong") for n in (1, 2, 3, 4)}
)  # fmt: skip
"""Classes of CUDA whose constructors only copy."""
EVENTS = frozenset({"cudaEventRecord", "cudaStreamWaitEvent"})
"""Calls that issue what is late by themselves, where the event is one of kesco's: on the default stream it is none."""
OWN = frozenset({"kesco_pace", "kesco_paced", "kesco_stretch", "kesco_streams", "kesco_streams_if_distinct", *SETS,
                 "kesco_current"})  # fmt: skip
"""Functions of kesco's own that do so as well, or do nothing."""
OPAQUE = frozenset({"lambda"})
"""Of what is not told apart (`Unknown.what`), what does nothing but evaluate its parts."""


def is_own_stream(one: Expr) -> bool:
    """Whether an expression is one of kesco's streams, as a schedule gives them."""
    one = bare(one)
    return _is_of_streams(one, ("stream",)) or (isinstance(one, Call) and one.name.rpartition("::")[2] == _CURRENT)


def is_own_event(call: Call) -> bool:
    """Whether a call records or awaits one of kesco's events."""
    return call.name in EVENTS and any(_is_of_streams(bare(one), ("done", "tail")) for one in call.arguments)


def _is_of_streams(one: Expr, members: tuple[str, ...]) -> bool:
    """Whether an expression is an element of a member of kesco's streams."""
    member = one.base if isinstance(one, Subscript) else None
    of = member.base if isinstance(member, Select) and member.arrow and member.member in members else None
    return isinstance(of, Name) and of.variable.type.spelling.rstrip("* ").endswith("KescoStreams")


@dataclass(frozen=True, slots=True)
class Batch:
    """One loop, in one function: `whole` is the loop's place; `launches` are all operations of its batches."""

    function: str
    whole: Span
    launches: tuple[int, ...]
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tells:
    """What could tell that launches are late: where, in words, and the numbers of the guards that it speaks against."""

    span: Span
    what: str
    guards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Batches:
    """All of a file.

    `launches` are the operations that go to `STREAM`, `calls` those that become others (`CALLS`); `issues` are the
    statements in front of which `ISSUE` stands, with whether they are the unbraced body of another one; `trips` are the
    bodies that begin with `TRIP`.
    """

    loops: tuple[Batch, ...] = ()
    launches: tuple[int, ...] = ()
    calls: tuple[int, ...] = ()
    issues: tuple[tuple[Span, bool], ...] = ()
    trips: tuple[Span, ...] = ()
