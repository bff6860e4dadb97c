"""Prefetches that are put into a program, and copies on streams."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from kesco.source import Span

COPY = "kesco_copy"
"""``cudaMemcpy`` on a stream, whose host goes on when its own memory is done with."""

OWN = {
    "cudaMemcpy": COPY,
    "cudaMemcpy2D": "kesco_copy_2d",
    "cudaMemcpyToSymbol": "kesco_copy_to_symbol",
    "cudaMemcpyFromSymbol": "kesco_copy_from_symbol",
}
"""What copies that the host waits for are called on a stream; all but `COPY` read and write at once, or wait."""


class Pages(enum.Enum):
    """Where a prefetch has pages of managed memory; the emitted text names them by the values."""

    DEVICE = "device"  # they move there
    HOST = "host"  # they move back
    BOTH = "both"  # the device gets copies of its own: from here on they are read only


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Pages of managed memory move to the device before the statement at `statement`, or to the host behind it.

    `operation` is the number of its sites, behind those of the text. `pointer` is the expression for the beginning of
    the allocation. `kernel` names the first kernel that reads it, or the last one that uses it, and `launch` is that
    kernel's operation where the prefetch stands right at it, -1 where it stands at a loop around it, or in that. There
    it is issued only where `only` holds, which is in the first trip.
    """

    operation: int
    pointer: str
    kernel: str
    launch: int
    statement: Span
    pages: Pages = Pages.DEVICE
    only: str = ""


@dataclass(frozen=True, slots=True)
class Zeroes:
    """Stores of zero that are memsets, by their operations, and the loops behind which the host waits for them."""

    operations: frozenset[int]
    behind: tuple[Span, ...]


ON, LATER = "KescoOn", "KescoLater"
"""What stands before a call in the text, with the stream that it is to follow; and where copies in it may go on."""
SETS = (ON, LATER)
TAKE_HERE, GIVE_HERE = "kesco_take_here", "kesco_give_here"
"""The allocation and the end of memory that such a function takes for itself: it is kept for the next call there."""
WAIT_HERE = "kesco_wait_here"
"""``cudaDeviceSynchronize`` in a function that follows its caller: on a stream that was set it waits for that alone."""
COPY_HERE = "kesco_copy_here"
"""The same on the current stream, in a function that follows its caller; waits for the device where nobody set one."""
SEND, SENT = "kesco_send", "kesco_sent"
"""`COPY` to the device whose source may be read in the background, and the wait until all such have been."""
FETCH, FETCHED = "kesco_fetch", "kesco_fetched"
"""`COPY` to the host that need not be complete yet, and the wait until all such are, which returns their error."""
LEAST = 1 << 23
"""Bytes of the smallest copy that is read in the background: what is declared with fewer is no part of its source."""
PAYS = 1 << 27
"""Bytes of copies of pageable memory for which pinning the memory they go through makes up."""
LEAST_FETCHED = 1 << 16
"""Bytes of the smallest copy to the host that is waited for later: what is declared with fewer is no part of it."""
FILLS = frozenset(
    {
        *("cudaMalloc", "cudaMallocAsync", "cudaEventCreate", "cudaEventCreateWithFlags"),
        *("cudaStreamCreate", "cudaStreamCreateWithFlags", "kesco_malloc", TAKE_HERE),
    }
)
"""Calls that write what their first argument points to, no other memory of the host, and run no code of the program."""
LEAVES = frozenset(
    {
        *("cudaFree", "cudaFreeAsync", "cudaMemset", "cudaMemsetAsync", "cudaGetLastError", "cudaPeekAtLastError"),
        *("cudaGetErrorString", "cudaGetErrorName", "cudaDeviceSynchronize", "cudaStreamSynchronize"),
        *("cudaEventRecord", "cudaEventSynchronize", "cudaStreamWaitEvent", "cudaEventDestroy"),
        *(
            "kesco_streams",
            "kesco_streams_if_distinct",
            "kesco_stretch",
            "kesco_pace",
            "kesco_paced",
            "kesco_prefetch",
            "kesco_freed",
        ),
        *("kesco_mark", "kesco_hold", "kesco_memset", "kesco_current", *SETS),
        *("kesco_turns", "kesco_turn", "kesco_turned", "kesco_place", "kesco_take", "kesco_give", "kesco_pin"),
        *("kesco_own", "kesco_owned", WAIT_HERE, GIVE_HERE),
    }
)
"""Calls that write no memory of the host, or none that is pageable, and run no code of the program."""
COPIES = {
    **dict.fromkeys(("cudaMemcpy", "cudaMemcpyAsync", COPY, COPY_HERE, SEND, FETCH), 3),
    **dict.fromkeys(("cudaMemcpy2D", "cudaMemcpy2DAsync", OWN["cudaMemcpy2D"]), 6),
    **dict.fromkeys(("cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync", OWN["cudaMemcpyToSymbol"]), 4),
}
"""Copies, and which argument of theirs is the direction; where it is left out, it is to the device."""
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 3
"""The directions of a copy, as ``cudaMemcpyKind`` numbers them."""
PRINTS = frozenset({"printf", "fprintf", "puts", "fputs", "putc", "fputc", "perror", "fflush", "operator<<"})
"""Functions that a program calls to say why it ends."""


@dataclass(frozen=True, slots=True)
class Sends:
    """Which copies of a function are read in the background, and where the host waits until they are.

    `operations` are the copies. `before` are the offsets of statements before which the host waits, `ends` those of
    closing braces.
    """

    operations: frozenset[int]
    before: frozenset[int]
    ends: frozenset[int]


@dataclass(frozen=True, slots=True)
class Fetches:
    """Which copies of a function to the host are not waited for at once, and where the host waits until they are there.

    `operations`, `before` and `ends` are as in `Sends`. `wait` is the statement that waits, which treats an error as
    the statements of the copies do.
    """

    operations: frozenset[int]
    before: frozenset[int]
    ends: frozenset[int]
    wait: str
