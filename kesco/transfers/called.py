"""Calls in which copies are not waited for: ``Called(program)``.

In: a program and a call of one of its functions that follow their callers. Out: whether copies in it may go on when it
comes back, and how the caller waits for them. Apart from the copies of a function's own because here two texts meet.

1. The function, and all that it calls, do nothing that looks at what is copied to the host or changes what is copied
from there (`Unlooked`), in one straight way to their ends. 2. All copies and waits in them deal with an error in the
same words, which mean the same in the caller (`fetching.form_of`). 3. A copy goes to a container of numbers if it does
as the caller says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kesco.ir import program as ir
from kesco.ir.pins import base_of
from kesco.ir.transfers import TO_DEVICE, TO_HOST
from kesco.transfers.fetching import form_of, is_of_numbers, means_one_thing
from kesco.transfers.unlooked import Unlooked

_COPY, _WAIT = "cudaMemcpy", "cudaDeviceSynchronize"
_DEEP = 4


@dataclass(frozen=True, slots=True)
class Called:
    """What is known of the calls of a program."""

    program: ir.Program
    _functions: dict[str, ir.Function] = field(default_factory=dict)

    def form(self, caller: ir.Function, call: ir.Call) -> str:
        """The statement by which the caller waits for the copies in a call; empty where they may not go on."""
        run = self._run(call, _DEEP)
        forms = {form_of(self.program, one, node.operation) for one in run for node in (*_copies(one), *_waits(one))}
        if len(forms) != 1 or not run or not all(map(self._is_in_one_text, run)):
            return ""
        form = forms.pop()
        name = form.partition("(")[0].encode()
        bare = form.startswith("kesco_")
        known = bare or (self._is_of_all(name, run, caller) and means_one_thing(self.program, caller, name))
        return form if form and known and self._is_calm(run, call) else ""

    def to_numbers(self, call: ir.Call) -> bool:
        """Whether all that is copied to the host in a call goes to elements of containers of numbers."""
        run = self._run(call, _DEEP)
        for one in run:
            given = dict(zip((p.key for p in one.parameters), call.arguments, strict=False)) if one is run[0] else {}
            for copy in _copies(one):
                to = copy.arguments[0]
                root = _root(to)
                passed = (
                    root is not None and root.type.shape is ir.Shape.POINTER and root.key not in ir.reassigned(one.body)
                )
                goes = given.get(root.key, to) if root is not None and passed else to
                if _way(copy) == TO_HOST and not is_of_numbers(goes):
                    return False
        return True

    def on_host(self, call: ir.Call) -> Iterator[ir.Expr]:
        """Where in the host's memory copies in a call go to or come from, as the call says it."""
        function = next(iter(self._run(call, _DEEP)), None)
        for copy in _copies(function) if function is not None else ():
            side = copy.arguments[0 if _way(copy) == TO_HOST else 1]
            base = base_of(side)
            pairs = zip(function.parameters, call.arguments, strict=False) if function is not None else ()
            yield from (a for p, a in pairs if base is not None and p.key == base.key)

    def _run(self, call: ir.Call, depth: int) -> list[ir.Function]:
        """The function that is called, and all that it calls; none where that is not known."""
        if not self._functions:
            self._functions.update({f.key: f for f in self.program.functions})
        function = self._functions.get(call.key)
        if function is None or function.virtual or function.template or not depth:
            return []
        found = [function]
        for node in ir.walk(function.body):
            if isinstance(node, ir.Call) and node.key in self._functions and not node.standard:
                inner = self._run(node, depth - 1)
                if not inner:
                    return []
                found += inner
        return list(dict.fromkeys(found))

    def _is_in_one_text(self, function: ir.Function) -> bool:
        return function.span.path == self.program.path

    def _is_of_all(self, name: bytes, run: list[ir.Function], caller: ir.Function) -> bool:
        """Whether a name is that of a macro or function of the whole file, which the caller has, too."""
        text, start = self.program.text, caller.span.start
        named = [f for f in self.program.functions if f.name.rpartition("::")[2].encode() == name]
        calls = {n.name for f in run for n in ir.walk(f.body) if isinstance(n, ir.Call)}
        apart = caller.name == "main" and any("::" in one and one.endswith(f"::{name.decode()}") for one in calls)
        macro = re.search(rb"#[ \t]*define[ \t]+" + name + rb"\b", text)
        late = (macro is not None and macro.start() > start) or any(f.span.start > start and f.here for f in named)
        return not (apart or late or any(f.method_of for f in named))

    def _is_calm(self, run: list[ir.Function], call: ir.Call) -> bool:
        """Whether nothing in these functions looks at what may still be written, or changes what may still be read."""
        ours = {copy.operation for one in run for copy in _copies(one)}
        inner, numbers = {f.key for f in run}, self.to_numbers(call)
        small = Unlooked(self.program, frozenset(), to_numbers=numbers)
        nodes = (n for one in run for n in ir.walk(one.body))
        calls = frozenset(n.operation for n in nodes if isinstance(n, ir.Call) and n.key in inner)
        for one in run:
            own = one is run[0] and bool(one.method_of) and small.is_small(call.receiver)
            harmless = Unlooked(
                self.program, calls | ours, to_numbers=numbers, this=one.method_of, calls=calls, own_this=own
            )
            body = one.body.body if isinstance(one.body, ir.Block) else (one.body,)
            last = body[-1] if body else None
            ends = isinstance(last, ir.Leave) and last.how == "return"
            value = last.value if isinstance(last, ir.Leave) and ends else None
            calm = all(map(harmless.statement, body[: len(body) - ends]))
            kinds = [p.type for p in one.parameters if p.type.shape is not ir.Shape.REFERENCE]
            if not (calm and all(map(harmless.fits, kinds)) and (value is None or harmless.expression(value))):
                return False
        return True


def _copies(function: ir.Function) -> Iterator[ir.Call]:
    """The copies between host and device in a function."""
    calls = (n for n in ir.walk(function.body) if isinstance(n, ir.Call))
    return (n for n in calls if n.standard and n.name == _COPY and _way(n) in (TO_DEVICE, TO_HOST))


def _waits(function: ir.Function) -> Iterator[ir.Call]:
    """Where a function waits for the device."""
    return (n for n in ir.walk(function.body) if isinstance(n, ir.Call) and n.standard and n.name == _WAIT)


def _way(call: ir.Call) -> int:
    kind = call.arguments[3] if len(call.arguments) > 3 else None
    return kind.value if isinstance(kind, ir.Constant) else 0


def _root(pointer: ir.Expr) -> ir.Variable | None:
    """The variable that a pointer is reckoned from."""
    one = ir.bare(pointer)
    while isinstance(one, ir.Binary) and one.operator in ("+", "-"):
        one = ir.bare(one.left)
    return one.variable if isinstance(one, ir.Name) else None
