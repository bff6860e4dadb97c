"""Global arrays that hold nothing when ``main`` begins, as nobody can have filled them before.

In: the program and an array that the text does not initialise. Out: whether that is so. Apart from `resolve` because it
asks who else may know the array, which has nothing to do with where functions are entered.

Code runs before ``main``: constructors of global objects, of headers and of other files, and what they call.
So the array must be the file's own, and be named in ``main`` and in static functions that nobody else calls, only.
"""

from __future__ import annotations

from kesco.ir import program as ir


def only_main_fills(program: ir.Program, array: ir.Variable) -> bool:
    """Whether whatever names an array runs because ``main`` does."""
    if not array.internal or array.scope is not ir.Scope.GLOBAL or b"constructor" in program.text:
        return False
    before = [n for _, initial in program.globals if initial is not None for n in ir.walk(initial)]
    named = any(isinstance(n, ir.Name) and n.variable.key == array.key for n in before)
    runs = any(isinstance(n, (ir.Call, ir.Unknown, ir.New)) for n in before)
    if named or runs or any(f.key.startswith("initialiser of ") for f in program.functions):
        return False
    bodies = {f.key: f for f in program.functions}
    inner = {key: list(ir.walk(f.body)) for key, f in bodies.items()}
    callers: dict[str, set[str]] = {key: set() for key in bodies}
    for key, nodes in inner.items():
        for one in (n for n in nodes if isinstance(n, ir.Call) and n.key in callers):
            callers[one.key].add(key)
    allowed = {key for key, f in bodies.items() if f.name == "main"}
    grown = True
    while grown:
        more = {
            key
            for key, f in bodies.items()
            if f.here and f.internal and not (f.method_of or f.template or f.address_taken) and callers[key] <= allowed
        }
        grown = not more <= allowed
        allowed |= more
    return all(key in allowed for key, f in bodies.items() if _names(f.body, array))


def _names(node: ir.Expr | ir.Stmt, array: ir.Variable) -> bool:
    return any(isinstance(n, ir.Name) and n.variable.key == array.key for n in ir.walk(node))
