"""The merged text, and the check that each program in it is still itself: ``merge(specs, options)`` → `Merged`.

In: programs with priorities, and what is asked of each compilation. Out: the text. Nothing is written.

1. Each program is compiled and proven by itself: with its streams it does what it does serially. Copies that the host
waits for stay: the threads that would make them belong to no task. A program that is a merge itself comes apart into
its tasks (`apart`), which are taken as they are. 2. Where one asks for more work queues, which a process has for all
its programs, the merged text asks in its place, as kesco always asks for the most that there are; not where a program
minds them itself. 3. What they would share as one process refuses the merge (`state`). 4. The merged text is read
again, and every name in each program's part must refer to what it refers to in the program by itself, with the same
type, in the same order: the namespace has hidden nothing, and no macro or header of one has changed the other. 5. Both
compilers' sides must accept it.

So each part is proven as a program of its own; and two parts share neither memory, nor streams, nor anything of
``process_state.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.diagnostics import Diagnostic, Severity
from kesco.emit.prologue import queues, without_queues
from kesco.errors import InputError
from kesco.frontend.clang import load
from kesco.ir.compilation import Compilation
from kesco.merging.apart import Whole, apart
from kesco.merging.specs import Spec
from kesco.merging.state import NOT_A_TASKS, diagnose, own_calls
from kesco.merging.units import Reference, Unit, merged_units, read_unit
from kesco.merging.wrap import Wrapped, wrapped
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.session import read, toolchain_for
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
    """The text of all programs, and what was done in each of them: tasks of an earlier merge are as they were."""

    text: bytes
    programs: tuple[Compilation, ...]
    specs: tuple[Spec, ...]

    @property
    def tasks(self) -> tuple[tuple[Spec, Compilation], ...]:
        """Each program with what was made of it."""
        return tuple(zip(self.specs, self.programs, strict=True))


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
    load(str(toolchain.libclang))
    odd = next((f for f in options.flags if re.search("per-thread|PER_THREAD_DEFAULT|openmp", f)), None)
    if odd is not None:
        what = f"'{odd}': what the threads of a task do is not known to belong to it"
        raise InputError(Diagnostic(NOT_A_TASKS, Severity.ERROR, what, help="leave the flag out"))
    tasks: list[_Task] = []
    asks = False
    names = {spec.name for spec in specs}
    for spec in specs:
        progress(spec.name)
        source = read(spec.path)
        whole = apart(source, written)
        if whole is not None:
            asks |= whole.asks
            tasks += _again(spec, source, whole, whole.under(spec, names), arguments)
            continue
        done = compile_file(spec.path, replace(options, copies="keep", launches="keep"))
        text, more = without_queues(done.text)
        asks |= more
        tasks.append(_Task(spec, done, read_unit(spec.path, text, arguments)))
    problems = diagnose([one.spec.name for one in tasks], [one.unit for one in tasks])
    if problems:
        raise InputError(*problems)
    asks &= not any(QUEUES in one.unit.text for one in tasks)
    parts = [one.part or wrapped(one.unit) for one in tasks]
    text = written([one.spec for one in tasks], parts, one_thread, asks)
    _check(tasks, text, toolchain, options)
    return Merged(text, tuple(one.program for one in tasks), tuple(one.spec for one in tasks))


@dataclass(frozen=True, slots=True)
class _Task:
    """A program on its way; `part` is its text in another merge, where it comes from one."""

    spec: Spec
    program: Compilation
    unit: Unit
    part: Wrapped | None = None


def _again(
    outer: Spec, source: bytes, whole: Whole, specs: Sequence[Spec], arguments: tuple[str, ...]
) -> Iterator[_Task]:
    """The tasks of a program that is a merge itself; raises `InputError` (K126) where one launches past its stream."""
    names = [one.name for one in whole.specs]
    texts = [one.text.encode("utf-8", "surrogateescape") for one in whole.parts]
    units = merged_units(outer.path, source, arguments, dict(zip(names, texts, strict=True)))
    for name, spec, part, text in zip(names, specs, whole.parts, texts, strict=True):
        if not units[name].references:
            what = f"{outer.path}: a launch of '{name}' is not on its task's stream"
            raise InputError(Diagnostic(CHANGED, Severity.ERROR, what, help="merge its programs anew"))
        yield _Task(spec, Compilation(spec.path, text, text, (), ()), units[name], part)


def written(specs: Sequence[Spec], parts: Sequence[Wrapped], one_thread: bool = False, asks: bool = False) -> bytes:
    """The merged text; `asks` for more work queues."""
    from jinja2 import Environment, StrictUndefined

    levels = sorted({spec.level for spec in specs})
    tasks = [
        {"name": s.name, "label": s.label, "path": s.path, "rank": levels.index(s.level), "macros": one.macros,
         "text": one.text}
        for s, one in zip(specs, parts, strict=True)
    ]  # fmt: skip
    order = sorted(range(len(specs)), key=lambda number: (specs[number].level, number))
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(files("kesco.merging").joinpath("templates/merged.cu.j2").read_text("utf-8"))
    needed = (*_NEEDED, *(_NEEDED_BY_ONE if one_thread else ()))
    includes = dict.fromkeys((*needed, *(header for part in parts for header in part.headers)))
    text = template.render(includes=tuple(includes), needed=needed, tasks=tasks, own=own_calls(),
                           order=", ".join(map(str, order)), one_thread=one_thread,
                           queues=queues() if asks else "")  # fmt: skip
    return text.encode("utf-8", "surrogateescape")


def _check(tasks: Sequence[_Task], text: bytes, toolchain: Toolchain, options: Options) -> None:
    """Steps 4 and 5; raises `InputError` (K126)."""
    help_ = "give the two another name, or start the programs as processes of their own"
    with TemporaryDirectory(prefix="kesco-") as folder:
        path = Path(folder) / "merged.cu"
        path.write_bytes(text)
        try:
            names = dict.fromkeys((one.spec.name for one in tasks), b"")
            found = merged_units(str(path), text, host_arguments(toolchain, options.flags), names)
            done = check_compiles(toolchain, str(path), options.flags)
            said = "" if done.returncode == 0 else next(iter(done.stderr.strip().splitlines()), "nothing said")
        except InputError as error:
            said = error.diagnostics[0].message
    if said:
        what = f"inside a namespace a program is no longer valid: {said}"
        raise InputError(Diagnostic(CHANGED, Severity.ERROR, what, help=help_))
    for task in tasks:
        pair = _difference(task.unit.references, found[task.spec.name].references)
        if pair is None:
            continue
        one, other = pair
        name = one.name if one is not None else other.name if other is not None else ""
        subject = f"'{name}'" if name else "this"
        what = f"{subject} would mean something else inside a namespace of '{task.spec.name}'"
        raise InputError(Diagnostic(CHANGED, Severity.ERROR, what, one.span if one is not None else None, help=help_))


def _difference(
    before: Sequence[Reference], after: Sequence[Reference]
) -> tuple[Reference | None, Reference | None] | None:
    """The first reference that is not the same in both."""
    for one, other in zip_longest(before, after):
        if one is None or other is None or (one.to, one.type) != (other.to, other.type):
            return one, other
    return None
