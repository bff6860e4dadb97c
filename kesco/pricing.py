"""What each operation of a program costs: from a profile, or an estimate.

In: a program, the device code of its kernels, and a profile where there is one. Out: `Prices`. A stage of its own
because only here the lines and names of a profile meet the operations of a text.

1. With a profile: an operation is what the profile saw at its line, by kind and kernel; of several shapes the median
   time counts by how often each ran, and the shape is that of the most time. Where the profile is of another version of
   the file, lines mean nothing, and a kernel is what the profile saw under its name.
2. Without one, a kernel's time is estimated by `device_work` and, where it is constant, its launch configuration; a
   copy's by its size, where that is constant. Such numbers order operations by weight. They are not times, and nothing
   is refused because of them.

What it refuses: a profile of another program (K531).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import PurePath

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir import program as ir
from kesco.ir.costs import Cost, Costs
from kesco.ir.pieces import pieces
from kesco.model.forecast import UNKNOWN, Price, Prices
from kesco.model.gpu import KernelCost, Machine

FOREIGN, STALE = "K531", "K532"
_BYTES_PER_MICROSECOND = 50_000.0  # of a copy between host and device: what PCIe 5 takes
_STEP = 0.002  # microseconds of one instruction of a warp that waits for memory now and then


def is_of(program: ir.Program, profile: Costs) -> bool:
    """Whether a profile is of this very text; raises `UsageError` (K531) for one that is of no version of the file."""
    digest = _digest(program)
    sources = dict(profile.origin.sources)
    if digest in sources.values():
        return True
    name = PurePath(program.path).name
    if sources and not any(PurePath(file).name == name for file in sources):
        known = ", ".join(f"'{file}'" for file in sorted(sources)[:3])
        what = f"the profile is of {known}, not of '{program.path}'"
        help_ = f"'kesco profile {program.path}' makes one of this program"
        raise UsageError(Diagnostic(FOREIGN, Severity.ERROR, what, help=help_))
    return False


def _digest(program: ir.Program) -> str:
    """That of the file itself, without headers that are read as a part of it."""
    return hashlib.sha256(pieces(program.path, program.text).file(-1)).hexdigest()


def stale(program: ir.Program) -> Diagnostic:
    """What to say of a profile of another version."""
    what = f"'{program.path}' changed since the profile was made: operations are found by their kernels' names alone"
    return Diagnostic(STALE, Severity.WARNING, what, help="measure it again: 'kesco profile'")


def measured(program: ir.Program, profile: Costs) -> Prices:
    """Prices from a profile; `UsageError` (K531) where it is of another program."""
    exact = is_of(program, profile)
    names = {file for file, digest in profile.origin.sources if digest == _digest(program)}
    here = {PurePath(file).name for file in names} or {PurePath(program.path).name}
    at: dict[int, list[Cost]] = {}
    named: dict[str, list[Cost]] = {}
    for one in profile.costs:
        file, _, line = one.identity.at.rpartition(":")
        if exact and PurePath(file).name in here and line.isdecimal():
            at.setdefault(int(line), []).append(one)
        named.setdefault(one.identity.name, []).append(one)
        named.setdefault(_base(one.display), []).append(one)
    found: dict[int, Price] = {}
    files = pieces(program.path, program.text)
    known_by_line = {o.number for o in program.operations if exact and not files.is_header(o.span.start)}
    for number, launch in _launches(program).items():
        by_line = number in known_by_line
        candidates = [c for line in _lines(program, number) for c in at.get(line, ()) if _is(c, launch)]
        if not by_line:
            candidates = [c for name in (*launch.kernel.candidates, launch.kernel.name) for c in named.get(name, ())]
        price = _price(dict.fromkeys(c for c in candidates if c.identity.kind == "kernel"))
        found[number] = price or Price(UNKNOWN, absent=by_line)
    for operation in program.operations:
        if operation.number not in found:
            by_line = operation.number in known_by_line
            there = [c for line in _lines(program, operation.number) for c in at.get(line, ()) if by_line]
            price = _price(dict.fromkeys(c for c in there if c.identity.kind != "kernel"))
            found[operation.number] = price or Price(KernelCost(2.0, 1, 32), absent=by_line)
    limits = {field.name for field in fields(Machine)}
    known = {name: value for name, value in profile.origin.limits if name in limits and value > 0}
    return Prices(replace(Machine(), **known), found, exact)


def _price(costs: Iterable[Cost]) -> Price | None:
    """The price of what one operation of the text was in a run; `costs` may repeat."""
    timed = [(one, one.time) for one in costs if one.time is not None]
    if not timed:
        return None
    runs = sum(time.count for _, time in timed)
    nanoseconds = sum(time.median * time.count for _, time in timed) / runs
    one = max(timed, key=lambda pair: (pair[1].total, pair[0].identity))[0]
    shared = one.identity.shared + (one.static_shared or 0)
    cost = KernelCost(
        nanoseconds / 1000, max(one.identity.blocks, 1), max(one.identity.threads, 1),
        32 if one.registers is None else one.registers, shared, one.sm or 0.0, one.memory or 0.0,
    )  # fmt: skip
    return Price(cost, True, runs)


def _is(cost: Cost, launch: ir.Launch) -> bool:
    """Whether a kernel at the line of a launch is the one that it names: there may be others on that line."""
    kernel = launch.kernel
    return cost.identity.name in (*kernel.candidates, kernel.name) or _base(cost.display) == _base(kernel.name)


def _base(display: str) -> str:
    """A kernel's name without namespaces and template arguments."""
    return display.partition("<")[0].rpartition("::")[2]


def _launches(program: ir.Program) -> dict[int, ir.Launch]:
    every = (n for f in program.functions for n in ir.walk(f.body) if isinstance(n, ir.Launch))
    return {n.operation: n for n in every if n.operation >= 0}


def _lines(program: ir.Program, number: int) -> range:
    """The lines that an operation stands on."""
    span = program.operations[number].span
    return range(span.line, span.line + program.text[span.start : span.end].count(b"\n") + 1)


def estimated(program: ir.Program, work: Mapping[str, int]) -> Prices:
    """Prices without a profile; `work` is what `device_work` says of each kernel.

    Such weights cannot be held against what launches and events take, nor is it known how many blocks of a kernel fit
    on the GPU. So on this machine these take no time, and every kernel fits: what could overlap is let overlap.
    """
    found: dict[int, Price] = {}
    machine = Machine()
    for number, launch in _launches(program).items():
        grid, block = (_count(one) for one in launch.configuration[:2])
        steps = max((work.get(name, 0) for name in launch.kernel.candidates), default=0)
        cost = KernelCost(0.0, grid or UNKNOWN.blocks, block or UNKNOWN.threads)
        rounds = math.ceil(cost.blocks / machine.blocks_at_once(cost))
        time = steps * _STEP * rounds if steps else UNKNOWN.microseconds
        found[number] = Price(replace(cost, microseconds=time, blocks=1))
    return Prices(replace(machine, launch=0.0, record=0.0, wait=0.0, start=0.0), found)


def of_copies(prices: Prices, sizes: Mapping[int, int]) -> Prices:
    """The prices with those of copies and memsets by their size in bytes, for operations that have none."""
    more = {n: Price(KernelCost(size / _BYTES_PER_MICROSECOND, 1, 32)) for n, size in sizes.items()}
    return replace(prices, of=more | dict(prices.of))


def _count(expression: ir.Expr) -> int:
    """The number of blocks or threads where it is a constant, else 0."""
    if isinstance(expression, ir.Cast):
        return _count(expression.operand)
    if isinstance(expression, ir.Call) and expression.constructs and expression.name == "dim3::dim3":
        return math.prod(1 if one == ir.DEFAULT else _count(one) for one in expression.arguments)
    number = expression.variable.constant if isinstance(expression, ir.Name) else None
    if isinstance(expression, ir.Constant):
        number = expression.value
    return number if number is not None and number > 0 else 0
