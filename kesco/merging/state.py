"""What programs in one process would share, and would not as processes; it refuses what cannot be kept apart.

In: the programs' names with what they refer to. Out: diagnostics, errors all of them. The facts are in
``process_state.toml``: calls that change or keep something in the process; calls of CUDA that are a task's own, that
concern nobody else, and, by not being there, that are neither.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.resources import files

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.merging.units import Reference, Unit, is_system_name
from kesco.source import Span

SHARED = "K121"
NOT_A_TASKS = "K122"
ELSEWHERE = "K123"


@dataclass(frozen=True, slots=True)
class State:
    """Something of a process; `most` programs may use it."""

    names: tuple[str, ...]
    most: int
    why: str
    help: str

    def has(self, name: str) -> bool:
        """Whether a function or variable touches it."""
        plain = name.removeprefix("std::")
        return any(fnmatchcase(name, one) or fnmatchcase(plain, one) for one in self.names)


@dataclass(frozen=True, slots=True)
class _Facts:
    states: tuple[State, ...]
    own: tuple[str, ...]
    plain: frozenset[str]
    placed: frozenset[str]
    host_calls: re.Pattern[str]
    namespaces: tuple[str, ...]
    words: dict[str, str]


@functools.cache
def _facts() -> _Facts:
    found = tomllib.loads(files("kesco.merging").joinpath("process_state.toml").read_text("utf-8"))
    states = tuple(
        State(tuple(one["names"]), 1 if one["allow"] == "one" else 0, one["why"], one["help"]) for one in found["state"]
    )
    cuda = found["cuda"]
    calls = re.compile(cuda["host_calls"])
    plain = frozenset(cuda["plain"])
    placed = frozenset(cuda["placed"])
    return _Facts(states, tuple(cuda["own"]), plain, placed, calls, tuple(cuda["namespaces"]), found["words"])


def own_calls() -> tuple[str, ...]:
    """The functions in whose place a merged text calls its own."""
    return (*_facts().own, "exit")


def diagnose(names: Sequence[str], units: Sequence[Unit]) -> tuple[Diagnostic, ...]:
    """What keeps these programs from being one."""
    found: list[Diagnostic] = []
    for state in _facts().states:
        uses = [(name, one) for name, unit in zip(names, units, strict=True) if (one := _first(unit, state))]
        if len(uses) > state.most:
            notes = tuple(Note(f"'{name}' uses {one.name}", one.span) for name, one in uses[1:])
            one = uses[0][1]
            what = f"'{one.name}' in a process of several programs: {state.why}"
            found.append(Diagnostic(SHARED, Severity.ERROR, what, one.span, notes, state.help))
    for name, unit in zip(names, units, strict=True):
        found += _cuda(unit)
        found += _words(unit)
        found += _elsewhere(name, unit)
    return (*found, *_device_output(names, units), *_c_linkage(names, units))


def _first(unit: Unit, state: State) -> Reference | None:
    names = (one for one in unit.references if one.name and not one.device and is_system_name(one))
    return next((one for one in names if state.has(one.name)), None)


def _cuda(unit: Unit) -> Iterator[Diagnostic]:
    facts = _facts()
    seen: set[str] = set()
    for one in unit.references:
        if one.name in seen or not one.name or one.device or not is_system_name(one):
            continue
        if one.name in facts.placed and (one.span.path, one.span.start) in unit.harmless:
            continue
        seen.add(one.name)
        inside = next((n for n in facts.namespaces if one.name.startswith(f"{n}::")), None)
        unknown = (
            one.callable
            and facts.host_calls.fullmatch(one.name)
            and (one.name in facts.placed or one.name not in {*facts.own, *facts.plain})
        )
        if unknown or inside:
            what = f"'{one.name}' concerns more than the task that calls it, or may"
            help_ = "leave it out, or start the programs as processes of their own"
            yield Diagnostic(NOT_A_TASKS, Severity.ERROR, what, one.span, help=help_)


def _words(unit: Unit) -> Iterator[Diagnostic]:
    """What only the text shows."""
    for word, why in _facts().words.items():
        line = next((n for n, text in enumerate(unit.text.split(b"\n"), 1) if re.search(word.encode(), text)), 0)
        if line:
            span = Span(unit.path, 0, 0, line, 1)
            help_ = "leave it out, or start the programs as processes of their own"
            yield Diagnostic(NOT_A_TASKS, Severity.ERROR, why, span, help=help_)


def _elsewhere(name: str, unit: Unit) -> Iterator[Diagnostic]:
    for one in unit.elsewhere[:1]:
        what = f"'{one.name}' is defined in another file, which cannot be told from another program's"
        yield Diagnostic(ELSEWHERE, Severity.ERROR, what, one.span, help=f"put all of '{name}' into one file")


def _device_output(names: Sequence[str], units: Sequence[Unit]) -> Iterator[Diagnostic]:
    """Buffers of the device that belong to the process: of device-side printf, and the heap."""
    for call, why in (("printf", "the buffer of its output"), ("malloc", "the heap")):
        uses = [(n, r) for n, u in zip(names, units, strict=True) if (r := _on_device(u, call))]
        if len(uses) > 1:
            notes = tuple(Note(f"'{name}' uses it, too", one.span) for name, one in uses[1:])
            what = f"'{call}' on the device: {why} is one for all programs of a process, and may run over"
            help_ = "leave it out of all programs but one"
            yield Diagnostic(SHARED, Severity.ERROR, what, uses[0][1].span, notes, help_)


def _on_device(unit: Unit, call: str) -> Reference | None:
    return next((r for r in unit.references if r.device and r.name.removeprefix("std::") == call), None)


def _c_linkage(names: Sequence[str], units: Sequence[Unit]) -> Iterator[Diagnostic]:
    for number, unit in enumerate(units):
        for other in range(number):
            for both in sorted(unit.c_names & units[other].c_names):
                what = f"'{both}' has C linkage in '{names[other]}' and in '{names[number]}': it would be one"
                yield Diagnostic(SHARED, Severity.ERROR, what, help='leave out extern "C", or give it another name')
