"""The merged text, and the check that each program in it is still itself: ``merge(specs, options)`` → `Merged`.

In: programs with priorities, and what is asked of each compilation. Out: the text. Nothing is written.

1. Each program is compiled and proven by itself: with its streams it does what it does serially. Copies that the host
waits for stay: the threads that would make them belong to no task. Where one asks for more work queues, which a process
has for all its programs, the merged text asks in its place, as kesco always asks for the most that there are; not where
a program minds them itself. 2. What they would share as one process refuses the
merge (`state`). 3. The merged text is read again, and every name in each program's part must refer to what it refers to
in the program by itself, with the same type, in the same order: the namespace has hidden nothing, and no macro or
header of one has changed the other. 4. Both compilers' sides must accept it.

So each part is proven as a program of its own; and two parts share neither memory, nor streams, nor anything of
``process_state.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.diagnostics import Diagnostic, Severity
from kesco.emit.prologue import queues, without_queues
from kesco.errors import InputError
from kesco.ir.compilation import Compilation
from kesco.merging.specs import Spec
from kesco.merging.state import NOT_A_TASKS, diagnose, own_calls
from kesco.merging.units import Reference, Unit, merged_references, read_unit
from kesco.merging.wrap import Wrapped, wrapped
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.session import toolchain_for
from kesco.toolchain.compile import check_compiles, host_arguments
from kesco.toolchain.model import Toolchain

CHANGED = "K126"
QUEUES = b"CUDA_DEVICE_MAX_CONNECTIONS"
_NEEDED = (
    *("algorithm", "condition_variable", "cstdio", "cstdlib", "cstring", "map", "mutex", "thread", "vector"),
    *("string", "unistd.h", "cuda_runtime.h"),
)
_NEEDED_BY_ONE = ("cerrno", "cxxabi.h", "sys/mman.h", "ucontext.h")


@dataclass(frozen=True, slots=True)
class Merged:
    """The text of all programs, and what was done in each of them."""

    text: bytes
    programs: tuple[Compilation, ...]


def merge(
    specs: Sequence[Spec],
    options: Options,
    progress: Callable[[str], None] = lambda name: None,
    one_thread: bool = False,
) -> Merged:
    """One text for all programs, with a host thread for each or one for all.

    Raises `KescoError` where they cannot be one.
    """
    toolchain = toolchain_for(options)
    arguments = host_arguments(toolchain, options.flags)
    odd = next((f for f in options.flags if re.search("per-thread|PER_THREAD_DEFAULT|openmp", f)), None)
    if odd is not None:
        what = f"'{odd}': what the threads of a task do is not known to belong to it"
        raise InputError(Diagnostic(NOT_A_TASKS, Severity.ERROR, what, help="leave the flag out"))
    programs: list[Compilation] = []
    units: list[Unit] = []
    asks = False
    for spec in specs:
        progress(spec.name)
        programs.append(compile_file(spec.path, replace(options, copies="keep")))
        text, more = without_queues(programs[-1].text)
        asks |= more
        units.append(read_unit(spec.path, text, arguments))
    problems = diagnose([spec.name for spec in specs], units)
    if problems:
        raise InputError(*problems)
    asks &= not any(QUEUES in unit.text for unit in units)
    text = written(specs, [wrapped(unit) for unit in units], one_thread, asks)
    _check(specs, units, text, toolchain, options)
    return Merged(text, tuple(programs))


def written(specs: Sequence[Spec], parts: Sequence[Wrapped], one_thread: bool = False, asks: bool = False) -> bytes:
    """The merged text; `asks` for more work queues."""
    from jinja2 import Environment, StrictUndefined

    levels = sorted({spec.priority for spec in specs}, reverse=True)
    tasks = [
        {"name": s.name, "priority": s.priority, "path": s.path, "rank": levels.index(s.priority),
         "macros": one.macros, "text": one.text}
        for s, one in zip(specs, parts, strict=True)
    ]  # fmt: skip
    order = sorted(range(len(specs)), key=lambda number: (-specs[number].priority, number))
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(files("kesco.merging").joinpath("templates/merged.cu.j2").read_text("utf-8"))
    needed = (*_NEEDED, *(_NEEDED_BY_ONE if one_thread else ()))
    includes = dict.fromkeys((*needed, *(header for part in parts for header in part.headers)))
    text = template.render(includes=tuple(includes), needed=needed, tasks=tasks, own=own_calls(),
                           order=", ".join(map(str, order)), one_thread=one_thread, queues=queues() if asks else "")  # fmt: skip
    return text.encode("utf-8", "surrogateescape")


def _check(
    specs: Sequence[Spec], units: Sequence[Unit], text: bytes, toolchain: Toolchain, options: Options
) -> None:  # fmt: skip
    """Steps 3 and 4; raises `InputError` (K126)."""
    help_ = "give the two another name, or start the programs as processes of their own"
    with TemporaryDirectory(prefix="kesco-") as folder:
        path = Path(folder) / "merged.cu"
        path.write_bytes(text)
        try:
            found = merged_references(
                str(path), text, host_arguments(toolchain, options.flags), [s.name for s in specs]
            )
            done = check_compiles(toolchain, str(path), options.flags)
            said = "" if done.returncode == 0 else next(iter(done.stderr.strip().splitlines()), "nothing said")
        except InputError as error:
            said = error.diagnostics[0].message
    if said:
        what = f"inside a namespace a program is no longer valid: {said}"
        raise InputError(Diagnostic(CHANGED, Severity.ERROR, what, help=help_))
    for spec, unit in zip(specs, units, strict=True):
        pair = _difference(unit.references, found[spec.name])
        if pair is None:
            continue
        one, other = pair
        name = one.name if one is not None else other.name if other is not None else ""
        subject = f"'{name}'" if name else "this"
        what = f"{subject} would mean something else inside a namespace of '{spec.name}'"
        raise InputError(Diagnostic(CHANGED, Severity.ERROR, what, one.span if one is not None else None, help=help_))


def _difference(
    before: Sequence[Reference], after: Sequence[Reference]
) -> tuple[Reference | None, Reference | None] | None:
    """The first reference that is not the same in both."""
    for one, other in zip_longest(before, after):
        if one is None or other is None or (one.to, one.type) != (other.to, other.type):
            return one, other
    return None
