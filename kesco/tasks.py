"""Which operations belong to which task: ``marked(program, regions)`` writes it into their sites.

In: the program with its tasks, and the regions. Out: the regions with `Site.task` and `Site.priority`; and what is odd
about the tasks, as diagnostics. A stage of its own because a task is a stretch of text, and a site is one operation of
a function that may be called from several such stretches.

1. An operation whose text lies in what a pragma marks is of that task. 2. So is one in a function of this file that is
called there, directly or through others, unless a pragma marks that function itself. Where several tasks call a
function, it is of the one with the highest priority, and of these of the first in the text. 3. Any other launch of a
kernel with KeSCo's parameter ``int priority = P`` is of the task that all such kernels with this priority make up.

What it refuses to do: guess a task for anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir import program as ir
from kesco.ir.flow import Region, Role, Site
from kesco.ir.task import HIGHEST, LOWEST

_WORK = (Role.MOVABLE, Role.LEGACY)


def marked(program: ir.Program, regions: Sequence[Region]) -> tuple[Region, ...]:
    """The regions with the tasks of their sites; the same ones where nothing is marked."""
    tasks = task_of(program)
    return tuple(_with_tasks(region, tasks) for region in regions) if tasks else tuple(regions)


def _with_tasks(region: Region, tasks: dict[int, tuple[str, int]]) -> Region:
    def one(site: Site) -> Site:
        name, priority = tasks.get(site.operation, ("", site.priority))
        return replace(site, task=name, priority=priority) if name and site.role in _WORK else site

    linked = _with_tasks(region.linked, tasks) if region.linked is not None else None
    return replace(region, sites=tuple(map(one, region.sites)), linked=linked)


def task_of(program: ir.Program) -> dict[int, tuple[str, int]]:
    """The name and priority of the task of each operation that has one."""
    found: dict[int, tuple[str, int]] = {}
    for launch in _launches(program):
        priority = launch.kernel.priority
        if priority is not None and LOWEST <= priority <= HIGHEST:
            found[launch.operation] = (f"priority {priority}", priority)
    if not program.tasks:
        return found
    by_function = {f.key: f for f in program.functions if f.here}
    called_by = _callers(program)
    for operation in program.operations:
        if operation.span.path != program.path:
            continue
        task = _around(program, operation.span.start)
        if task is None:
            inside = [key for key, f in by_function.items() if f.span.start <= operation.span.start < f.span.end]
            tasks = [t for key in inside for t in called_by.get(key, ())]
            task = _first(tasks) if tasks else None
        if task is not None:
            found[operation.number] = (task.name, task.priority)
    return found


def _around(program: ir.Program, offset: int) -> ir.Task | None:
    """The task in whose marked text an offset lies."""
    return next((t for t in program.tasks if t.marked.start <= offset < t.marked.end), None)


def _first(tasks: Iterable[ir.Task]) -> ir.Task:
    return min(tasks, key=lambda t: (-t.priority, t.span.start))


def _callers(program: ir.Program) -> dict[str, list[ir.Task]]:
    """The tasks that call each unmarked function of this file, directly or through others, in the text's order."""
    own = {f.key: f for f in program.functions if f.here}
    calls: dict[str, list[ir.Call]] = {
        key: [n for n in ir.walk(f.body) if isinstance(n, ir.Call) and n.key in own] for key, f in own.items()
    }
    found: dict[str, list[ir.Task]] = {}
    for task in program.tasks:
        work = [c.key for many in calls.values() for c in many if _around(program, c.span.start) is task]
        while work:
            key = work.pop()
            known = found.setdefault(key, [])
            if task not in known and _around(program, own[key].span.start) is None:
                known.append(task)
                work += [c.key for c in calls[key] if _around(program, c.span.start) is None]
    return found


def _launches(program: ir.Program) -> list[ir.Launch]:
    return [n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Launch)]


def diagnose(program: ir.Program) -> tuple[Diagnostic, ...]:
    """What is odd about the program's tasks."""
    return (*_empty(program), *_shared(program), *_out_of_range(program))


def _empty(program: ir.Program) -> list[Diagnostic]:
    """Tasks that give the device nothing."""
    if not program.tasks:
        return []
    tasks = task_of(program)
    works = {n.operation for n in _launches(program)}
    works |= {one.number for one in program.operations if one.stream_text is not None}
    busy = {tasks[number][0] for number in works if number in tasks}
    return [
        Diagnostic("K215", Severity.WARNING, f"task '{t.name}' gives the device nothing to do", t.span,
                   help="mark the statement or the function that launches, in this file")
        for t in program.tasks if t.name not in busy
    ]  # fmt: skip


def _shared(program: ir.Program) -> list[Diagnostic]:
    """Functions that several tasks call."""
    found = []
    names = {f.key: f for f in program.functions if f.here}
    for key, tasks in _callers(program).items():
        if len({t.name for t in tasks}) > 1 and any(isinstance(n, ir.Launch) for n in ir.walk(names[key].body)):
            first = _first(tasks)
            notes = tuple(Note(f"task '{t.name}' calls it", t.span) for t in tasks[:3])
            message = f"several tasks call '{names[key].name}': its operations count as those of task '{first.name}'"
            help_ = "give each task a function of its own: an operation of the text has one stream for ever"
            found.append(Diagnostic("K216", Severity.WARNING, message, names[key].span, notes, help_))
    return found


def _out_of_range(program: ir.Program) -> list[Diagnostic]:
    """Kernels whose ``int priority = P`` is no priority."""
    found: dict[str, Diagnostic] = {}
    for launch in _launches(program):
        priority = launch.kernel.priority
        if priority is not None and not LOWEST <= priority <= HIGHEST:
            message = f"'{launch.kernel.name}' has priority {priority}, which is none: it makes no task"
            help_ = f"give a number from {LOWEST} to {HIGHEST}; {HIGHEST} comes first"
            found.setdefault(launch.kernel.name, Diagnostic("K217", Severity.WARNING, message, launch.span, help=help_))
    return list(found.values())
