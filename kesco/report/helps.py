"""What a user can do about a reason why something is not followed or kept in its place: ``help_for(reason)``.

In: a reason, as kesco words it. Out: a sentence, or nothing where no way is known. Apart from what explains the rest of
a function because each of these is followed once by a test, which sees the reason go away.
"""

from __future__ import annotations

_STATEMENT = "put the operation into a statement of its own"
# By words that occur in a reason; the first that fits.
HELP = (
    ("has a name", "rename it"),
    (
        "host may have to wait",
        "where the host need not wait, call the asynchronous form, with page-locked memory (cudaMallocHost)",
    ),
    ("may be pageable", "copy with page-locked memory (cudaMallocHost)"),
    ("symbol", "pass the data to the kernel by a pointer of its own instead of a device symbol"),
    ("copies of this kind", "use cudaMemcpyAsync or cudaMemcpy2DAsync with the direction stated"),
    ("reads a clock", "take the timer out of the kernel"),
    ("may return", "write the check out instead of in a macro"),
    ("macro", "write the operation out in the function instead of in a macro"),
    ("not in this file's own text", "move the launch into this file"),
    ("object with a destructor", "declare the object in front of the statement"),
    ("loop's header", _STATEMENT),
    ("head of a statement", _STATEMENT),
    ("part of a condition", "put the operation into a statement of its own, then test or return what it gave"),
    ("share one statement", "put each operation into a statement of its own"),
    ("same statement", "call it in a statement of its own, and pass the result"),
    ("stream of its own", "launch on the default stream and let kesco place the work"),
    ("host threads", "move the launches to a file that starts no threads"),
    ("OpenMP", "move the launches to a file without OpenMP"),
    ("per-thread default stream", "compile without --default-stream per-thread"),
    ("values in a loop", "use loops with constant bounds, and pointers that are set once"),
    ("asynchronous in some calls", "give each caller a function of its own"),
    ("asynchronous in some iterations", "write 'cudaMemcpyAsync' where no host memory takes part"),
    ("template", "launch from a function that is not a template"),
    ("it contains", "move the launches into a function without it"),
    ("one stream holds", "allow more streams: --streams, --strategy, or with a profile --force"),
    (
        "body is not visible",
        "define the kernel where this file sees it, or state what it does: "
        "'#pragma kesco kernel(name) reads(...) writes(...)'",
    ),
    ("through a surface", "write through a pointer instead of a surface object"),
    ("texture", "read through a pointer instead of a texture object"),
    ("launches kernels itself", "launch those kernels from the host"),
    ("through pointers", "pass each array as an argument of its own instead of pointers stored in memory"),
    ("may point anywhere", "allocate what it uses in this file, or mark pointers __restrict__"),
)


def help_for(reason: str) -> str:
    """What a user can do about one of kesco's reasons; empty where no way is known."""
    return next((advice for words, advice in HELP if words in reason), "")
