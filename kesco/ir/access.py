"""What an operation touches: buffers, access modes and the accesses that pair them.

A *buffer* is an allocation site (one per iteration of an unrolled loop), a device symbol, the unknown target of a
pointer that came in from outside, or one of a few pseudo buffers that stand for an observable order (device printf).
Two buffers conflict only when they are the same one, with the exceptions that `may_alias` states.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kesco.ir.poly import ByteRange, Poly
from kesco.source import Span


class AccessMode(enum.Flag):
    """How memory is touched through one pointer."""

    NONE = 0
    READ = 1
    WRITE = 2
    READ_WRITE = 3

    @property
    def text(self) -> str:
        """``-``, ``r``, ``w`` or ``rw``."""
        return ("-", "r", "w", "rw")[self.value]


class BufferKind(enum.Enum):
    """Where a buffer comes from."""

    DEVICE = "device"  # cudaMalloc and its relatives
    MANAGED = "managed"
    PINNED = "pinned"  # page-locked host memory, which kernels may reach too
    HOST = "host"  # pageable host memory: variables, malloc, new
    SYMBOL = "symbol"  # a __device__, __constant__ or __managed__ variable
    ENTRY = "entry"  # what a parameter or a global pointed to when the function was entered
    ORDER = "order"  # not memory: an observable order, such as that of device printf
    UNSEEN_HOST = "unseen host"  # may be anything that the host can reach, as cudaMalloc's memory is not
    UNKNOWN = "unknown"  # may be anything


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """One unit of aliasing.

    `key` is unique in a program and stable between runs; `name` is what a person reads, such as ``x[3]``. `bytes` is
    how much an allocation holds, where that is a constant, and `length` the same in terms of the program's integers.
    `apart` tells that a symbol is no managed variable, so that the host cannot touch it; `fixed` that no kernel may
    write it, whatever it is given (CUDA C++ Programming Guide, "__constant__").
    """

    key: str
    name: str
    kind: BufferKind
    span: Span | None = None
    bytes: int | None = None
    length: Poly | None = None
    apart: bool = False
    fixed: bool = False

    @property
    def on_device(self) -> bool:
        """Whether only the device reaches it, and the host by calls of CUDA alone."""
        return self.kind is BufferKind.DEVICE or (self.kind is BufferKind.SYMBOL and self.apart)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Buffer) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __lt__(self, other: object) -> bool:
        return self.key < other.key if isinstance(other, Buffer) else NotImplemented


CONTEXT = "@@"
"""Behind it a buffer's key says in which call of its function, where these are told apart, it was seen."""


def context_of(buffer: Buffer) -> str:
    """In which call of its function a buffer was seen; empty where calls are not told apart."""
    return buffer.key.rpartition(CONTEXT)[2] if CONTEXT in buffer.key else ""


UNKNOWN = Buffer("?", "unknown memory", BufferKind.UNKNOWN)
UNSEEN_HOST = Buffer("?host", "unknown host memory", BufferKind.UNSEEN_HOST)
DEVICE_PRINTF = Buffer("!printf", "device printf", BufferKind.ORDER)
DEVICE_HEAP = Buffer("!heap", "device heap", BufferKind.ORDER)


@dataclass(frozen=True, slots=True)
class Access:
    """One buffer touched by one operation; `why` says in words how this is known.

    `bytes` bounds which part of the buffer is touched; None where that may be all of it. Its symbols have one value
    each from a function's entry to its exit, so ranges of one region may be compared; its counters have one value in
    each trip of their loop.
    """

    buffer: Buffer
    mode: AccessMode
    why: str = ""
    bytes: ByteRange | None = None


IN_CALL = "in the function called"
BY_HOST_IN_CALL = "by the host, in the function called"
HELD_IN_CALL = "copied while the host waits, in the function called"
"""The `why` of the host's memory that a call copies from or to: it is done with when the call comes back."""
_ARGUMENT = f"{IN_CALL}, through argument "


def in_call(argument: int) -> str:
    """The `why` of what a call touches through an argument, from 0; of less than 0, not only through one."""
    return f"{_ARGUMENT}{argument + 1}" if argument >= 0 else IN_CALL


def argument_of(why: str) -> int:
    """Through which argument a call touches something, from 0; -1 where it is not known to be only through one."""
    return int(why.removeprefix(_ARGUMENT)) - 1 if why.startswith(_ARGUMENT) else -1


RELEASED = "the host may watch what it writes"
"""The `why` of what an operation does not touch itself, but whoever sees what it writes may: it comes behind that."""


def through_parameter(index: int) -> str:
    """The `why` of what a kernel touches through its parameter of that index, from 0."""
    return f"parameter {index + 1}"


def may_alias(a: Buffer, b: Buffer) -> bool:
    """Whether the two buffers may overlap: equal ones do, and unknown memory overlaps with all that it may be."""
    if a.key == b.key:
        return True
    return b.kind not in _NEVER.get(a.kind, _KINDS) or a.kind not in _NEVER.get(b.kind, _KINDS)


_KINDS = frozenset(BufferKind)
_NEVER = {
    BufferKind.UNKNOWN: frozenset({BufferKind.ORDER}),
    BufferKind.UNSEEN_HOST: frozenset({BufferKind.ORDER, BufferKind.DEVICE}),
}
