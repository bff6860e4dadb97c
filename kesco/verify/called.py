"""Calls in which copies may go on when they come back: ``Called(program)``.

In: the concurrent program as read from its text. Out: its calls behind ``KescoLater``, and for each in which form its
caller has to wait, and whether nothing that runs in it looks at memory or changes it (`Looks`). Apart because the
copies stand in one function and the wait for them in another.

1. Such a call runs one function of the file and what that calls, each in one straight way to its end. 2. All copies in
them are ``kesco_copy_here``, all waits ``kesco_wait_here``, and do the same with an error: in a macro, or a function
that has its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kesco.ir import program as ir
from kesco.ir.flow import Region, SiteKind
from kesco.ir.transfers import COPIES, COPY_HERE, ON_DEVICE, TO_HOST, WAIT_HERE
from kesco.verify.looks import Looks, is_of_numbers, squeezed
from kesco.verify.sources import later_in, way_of, word_of

LATERS = re.compile(rb"(?<!void )\bKescoLater\s*\(")
_FORM = re.compile(rb'@;?|(\w+)\(@(?:,(?:"[^"\\]*"|__FILE__|__LINE__|__func__|__FUNCTION__))*\);?')
_HELD = (COPY_HERE, WAIT_HERE)
_DEEP = 4


def with_later(program: ir.Program, region: Region) -> Region:
    """The region of a concurrent program, in which such calls do not keep the host."""
    if not LATERS.search(program.text):
        return region
    operations = {call.operation for function in program.functions for call in later_in(function)}
    sites = (
        replace(s, later=True) if s.kind is SiteKind.CALL and s.holds and s.operation in operations else s
        for s in region.sites
    )
    return replace(region, sites=tuple(sites))


def form_of(program: ir.Program, function: ir.Function, call: ir.Call) -> bytes:
    """What does with the result of a copy whatever it does, with ``@`` for the call; empty where that is not plain."""
    statement = program.operations[call.operation].statement if call.operation >= 0 else None
    if statement is None:
        return b""
    text = program.text
    bare = squeezed(text[statement.start : call.span.start] + b"@" + text[call.span.end : statement.end])
    known = _FORM.fullmatch(bare)
    if known is None or (known[1] and not _means_one_thing(program, function, known[1])):
        return b""
    return bare.removesuffix(b";")


def _means_one_thing(program: ir.Program, function: ir.Function, name: bytes) -> bool:
    words = {n.variable.name for n in ir.walk(function.body) if isinstance(n, (ir.Declare, ir.Name))}
    changes = re.findall(rb"#\s*(?:define|undef)\s+" + name + rb"\b", program.text)
    return name.decode() not in words and len(changes) < 2


@dataclass(frozen=True, slots=True)
class Called:
    """What is known of these calls of a program."""

    program: ir.Program

    def form(self, caller: ir.Function, call: ir.Call) -> bytes:
        """The form of the wait for the copies in a call; empty where there is none, or where they may not go on."""
        run = self._run(call, _DEEP)
        forms = {form_of(self.program, one, node) for one in run for node in _calls(one) if word_of(node) in _HELD}
        numbers = self.is_to_numbers(call)
        if len(forms) != 1 or not all(self._is_calm(one, run, call, numbers=numbers) for one in run):
            return b""
        form = forms.pop()
        name = form.partition(b"(")[0] if b"(" in form else b""
        same = {f.key for f in self.program.functions if f.name.rpartition("::")[2].encode() == name}
        member = any(f.method_of for f in self.program.functions if f.key in same)
        plain = not name or (len(same) < 2 and not member and _means_one_thing(self.program, caller, name))
        return form if plain else b""

    def copies(self, call: ir.Call) -> list[tuple[ir.Function, ir.Call]]:
        """The copies in a call, and where the device is waited for, each with its function."""
        return [(one, node) for one in self._run(call, _DEEP) for node in _calls(one) if word_of(node) in _HELD]

    def is_to_numbers(self, call: ir.Call) -> bool:
        """Whether all that is copied to the host in a call goes to vectors of numbers, as the call says it."""
        run = self._run(call, _DEEP)
        home = ((one, copy) for one in run for copy in _copies(one) if way_of(copy) == TO_HOST)
        return all(is_of_numbers(_given(one, copy.arguments[0], call if one is run[0] else None)) for one, copy in home)

    def _run(self, call: ir.Call, depth: int) -> list[ir.Function]:
        """The function that is called, and all that it calls of the program; none where one is not known."""
        bodies = {f.key: f for f in self.program.functions}
        function = bodies.get(call.key)
        if (
            function is None
            or not depth
            or function.virtual
            or function.template
            or function.span.path != self.program.path
        ):
            return []
        found = {function.key: function}
        for node in ir.walk(function.body):
            if isinstance(node, ir.Call) and node.key in bodies and not node.standard and not _is_of_kesco(node):
                inner = self._run(node, depth - 1)
                if not inner:
                    return []
                found |= {one.key: one for one in inner}
        return list(found.values())

    def _is_calm(self, one: ir.Function, run: list[ir.Function], call: ir.Call, *, numbers: bool) -> bool:
        """Whether a function is one straight way to its end, on which nothing looks at memory or changes it."""
        inside = {(n.span, n.key): True for n in _calls(one) if n.key in {f.key for f in run}}
        looks = _Inside(self.program, b"", set(), one.method_of, members=numbers, later=inside)
        looks.own_this = one is run[0] and bool(one.method_of) and looks.is_small(call.receiver)
        known = {word_of(n) for n in _calls(one) if word_of(n) in COPIES and way_of(n) != ON_DEVICE}
        known |= {word_of(n) for n in _calls(one) if word_of(n).endswith("Synchronize")}
        kept = (p.type for p in one.parameters if p.type.shape is not ir.Shape.REFERENCE)
        return known <= {COPY_HERE} and all(map(looks.small, kept)) and looks.is_calm(one.body)


class _Inside(Looks):
    """The same in what is called, where copies may go on as the caller says."""

    def is_calm(self, body: ir.Stmt) -> bool:
        """Whether a body does nothing else, and ends at its end."""
        return self._calm_body(body, True)

    def calls(self, call: ir.Call) -> bool:
        """Whether a call does neither by itself: a copy is no matter here."""
        return word_of(call) == COPY_HERE or super().calls(call)


def _is_of_kesco(call: ir.Call) -> bool:
    return word_of(call).lower().startswith("kesco")


def _calls(function: ir.Function) -> Iterator[ir.Call]:
    return (n for n in ir.walk(function.body) if isinstance(n, ir.Call))


def _copies(function: ir.Function) -> Iterator[ir.Call]:
    """The copies in a function that go on."""
    return (n for n in _calls(function) if word_of(n) == COPY_HERE)


def _given(function: ir.Function, to: ir.Expr, call: ir.Call | None) -> ir.Expr:
    """An address as the call says it, where it is reckoned from a parameter that keeps its value."""
    root = ir.bare(to)
    while isinstance(root, ir.Binary) and root.operator == "+":
        root = ir.bare(root.left)
    if call is None or not isinstance(root, ir.Name) or root.variable.key in ir.reassigned(function.body):
        return to
    pairs = zip(function.parameters, call.arguments, strict=False)
    return next((a for p, a in pairs if p.key == root.variable.key and p.type.shape is ir.Shape.POINTER), to)
