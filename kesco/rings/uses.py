"""How a statement uses a pointer, and whether what it writes through it is the same in turns that are alike.

In: launches and calls of a loop's body. Out: which argument an access goes through, and what decides which bytes it
touches. Apart from the rest because this is about expressions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, argument_of, through_parameter
from kesco.ir.handing import carries, is_from, works_on
from kesco.ir.kernels import Writes, writes_no_more
from kesco.ir.turns import Steering
from kesco.ir.within import Within

_COPIES = ("cudaMemcpy", "cudaMemcpyAsync")
_FILLS = ("cudaMemset", "cudaMemsetAsync")


@dataclass(frozen=True, slots=True)
class Use:
    """A launch, copy or memset, or a call of a function in which such are."""

    node: ir.Launch | ir.Call


class _Changing(Protocol):
    @property
    def calm(self) -> bool: ...

    def changing(self) -> frozenset[str]: ...

    def values(self) -> Mapping[str, ir.Expr | None]: ...

    @property
    def within(self) -> Within: ...

    @property
    def loop(self) -> ir.Loop: ...

    def in_turn(self, one: ir.Expr) -> str: ...


def uses(body: ir.Stmt, calling: Collection[int] = ()) -> dict[int, Use]:
    """The launches, copies and memsets of a body, and the calls among `calling`, by their operations."""
    every = (n for n in ir.walk(body) if isinstance(n, ir.Call))
    calls = (n for n in every if n.name in (*_COPIES, *_FILLS) or n.operation in calling)
    launches = (n for n in ir.walk(body) if isinstance(n, ir.Launch))
    nodes: list[ir.Launch | ir.Call] = [*launches, *calls]
    return {n.operation: Use(n) for n in nodes}


def is_dim3(variable: ir.Variable) -> bool:
    """Whether a variable is the shape of a grid or a block."""
    return variable.type.spelling in ("dim3", "const dim3")


def handed_on(node: ir.Expr | ir.Stmt, pointer: ir.Variable, within: Within, inside: bool = False) -> Iterator[bool]:
    """True for each mention of a pointer whose value goes to the device's work and nowhere else."""
    variable = ir.named(node) if isinstance(node, (ir.Name, ir.Select)) else None
    if variable is not None:
        if variable.key == pointer.key:
            yield inside
    else:
        for child in ir.children(node):
            passes = works_on(node, child) or (inside and carries(node, child))
            if isinstance(node, ir.Call) and not passes:
                given = [n for n, one in enumerate(node.arguments) if one is child and is_from(one, pointer.key)]
                passes = bool(given) and within.hands_on(node, given[0])
            yield from handed_on(child, pointer, within, passes)


def pointer_of(use: Use, access: Access) -> ir.Variable | None:
    """The variable that an access goes through: the only pointer in its argument."""
    argument = _argument(use, access)
    if argument is None:
        return None
    leaves = (n for n in ir.walk(argument) if isinstance(n, (ir.Name, ir.Select)))
    names = [one for n in leaves if (one := ir.named(n)) is not None]
    pointers = [one for one in names if one.type.shape is not ir.Shape.INTEGER]
    return pointers[0] if len(pointers) == 1 else None


def _argument(use: Use, access: Access) -> ir.Expr | None:
    arguments = use.node.arguments
    if isinstance(use.node, ir.Call) and use.node.name not in (*_COPIES, *_FILLS):
        at = argument_of(access.why)
        return arguments[at] if 0 <= at < len(arguments) else None
    if isinstance(use.node, ir.Launch):
        return next((one for n, one in enumerate(arguments) if access.why == through_parameter(n)), None)
    at = 0 if AccessMode.WRITE in access.mode else 1
    return arguments[at] if len(arguments) > 2 and access.mode is not AccessMode.READ_WRITE else None


def deciding_in(steering: Steering, use: Use, access: Access, body: _Changing) -> frozenset[str] | None:
    """In turns with the same values of these variables the same bytes are written through an argument.

    Whatever memory holds; None where that depends on anything else.
    """
    node, argument = use.node, _argument(use, access)
    if argument is None:
        return None
    deciding = [argument]
    if isinstance(node, ir.Call) and node.name not in (*_COPIES, *_FILLS):
        inner = body.within.deciding(node, argument_of(access.why), steering)
        if inner is None:
            return None
        deciding += inner
    elif isinstance(node, ir.Call):
        deciding.append(node.arguments[2])
    else:
        at = next(n for n, one in enumerate(node.arguments) if one is argument)
        if not node.kernel.candidates:
            return None
        for kernel in node.kernel.candidates:
            decides = steering.get(kernel, {}).get(at)
            if decides is None:
                return None
            if any(n >= len(node.arguments) or node.arguments[n] == ir.DEFAULT for n in decides):
                return None  # a default argument may be another one each time
            deciding += [node.arguments[n] for n in decides]
        deciding += node.configuration[:3]
    same = _Same(body.changing(), body.values(), set(), body.calm, body.within, body.loop)
    alike = [same.expression(one, pointer=one is argument) for one in deciding]
    return frozenset(same.found) if all(alike) and deciding[1:] else None


def written_before(writes: Writes, first: Use, other: Use, one: Access, more: Access, body: _Changing) -> bool:
    """Whether a launch writes through an access nothing but what the first one has written through its own."""
    if not isinstance(first.node, ir.Launch) or not isinstance(other.node, ir.Launch):
        return False
    places = (_parameter(first.node, one), _parameter(other.node, more))
    return -1 not in places and writes_no_more(
        writes, (first.node, places[0]), (other.node, places[1]), lambda name: body.in_turn(name)
    )


def _parameter(launch: ir.Launch, access: Access) -> int:
    return next((n for n in range(len(launch.arguments)) if access.why == through_parameter(n)), -1)


@dataclass(frozen=True, slots=True)
class _Same:
    """Which expressions are the same in turns with the same values of the variables `found`.

    `changed` are those that change in the loop, and `values` what some of them are in each turn (`Body.values`). In a
    `calm` loop nothing changes variables that are not the function's own, but where it names them.
    """

    changed: frozenset[str]
    values: Mapping[str, ir.Expr | None]
    found: set[str]
    calm: bool
    within: Within
    loop: ir.Loop

    def expression(self, one: ir.Expr, *, pointer: bool = False) -> bool:
        """Whether an expression of integers, and of one pointer where that may be, has one value in such turns."""
        variable = ir.named(one) if isinstance(one, (ir.Name, ir.Select)) else None
        if variable is not None:
            through = pointer and variable.type.shape is ir.Shape.POINTER
            return variable.constant is not None or through or self._variable(variable)
        if self.calm and self.within.stays(self.loop, one):
            return True
        parts = [part for part in ir.children(one) if isinstance(part, ir.Expr)]
        known = self.within.is_reckoned(one) or one == ir.DEFAULT
        return known and all(self.expression(part, pointer=pointer) for part in parts)

    def _variable(self, one: ir.Variable) -> bool:
        if one.key == f"this->{one.name}" and self.within.is_lent(one.name):
            return False
        own = (self.calm or one.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)) and not one.type.volatile
        whole = one.type.shape is ir.Shape.INTEGER
        if not own or not (whole or is_dim3(one)):
            return False
        if one.key not in self.changed:
            return True
        value = self.values.get(one.key)
        if value is not None:
            return self.expression(value)
        if one.key in self.values and whole and "__int128" not in one.type.spelling:
            self.found.add(one.name)
            return True
        return False
