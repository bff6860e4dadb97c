"""Which branches of a program are only taken where a call of CUDA, or of its libraries, has failed.

In: a condition, or a statement. Out: which of its branches that is; whether a statement leaves its function nowhere
else. What a program prints there tells that it failed, not how far the device is: it is not what a wait of the host is
for.
"""

from __future__ import annotations

from collections.abc import Iterator

from kesco.ir import program as ir
from kesco.ir.replay import ENDS

LEAVE = "KescoLeave"
"""The type of kesco's own object whose end, where a function is left early, waits for the device."""
EARLY = "early"
"""Its member that says whether the function is being left early."""

CLEANS = frozenset({"cudaDeviceReset", "cudaThreadExit", "cudaDeviceSynchronize", "cudaThreadSynchronize", "cudaFree"})
"""What is nothing to the rest of a program where a call has failed and the process ends: it cleans up."""
PRINTS = frozenset({"printf", "fprintf", "puts", "fputs", "perror", "fflush"})
NAMES_ERRORS = frozenset({"cudaGetErrorString", "cudaGetErrorName"})
SAYS = ENDS | PRINTS | {"operator<<"}
"""What a program may call where a call of CUDA has failed."""

_AT_EXIT = frozenset({"atexit", "at_quick_exit", "on_exit"})
_RUNS_AT_EXIT: dict[int, tuple[ir.Program, bool]] = {}
"""What was found of the program that was asked for last: each check of a file asks again."""
_STATUS = tuple(
    f"{const}{name}"
    for const in ("", "const ")
    for name in ("cudaError", "cudaError_t", "cublasStatus_t", "cufftResult", "cufftResult_t", "curandStatus",
                 "curandStatus_t", "cusparseStatus_t", "cusolverStatus_t")
)  # fmt: skip


def where_it_failed(condition: ir.Expr) -> bool | None:
    """True for the branch taken if the condition holds, False for the other one, None for neither."""
    if isinstance(condition, ir.Unary) and condition.operator == "!":
        inner = where_it_failed(condition.operand)
        return None if inner is None else not inner
    if _is_status(condition):
        return True
    if not isinstance(condition, ir.Binary) or condition.operator not in ("!=", "=="):
        return None
    sides = condition.left, condition.right
    if all(map(_is_status, sides)) and any(isinstance(s, ir.Cast) and s.operand == ir.Constant(0) for s in sides):
        return condition.operator == "!="
    return None


def destroyed(program: ir.Program, variable: ir.Variable) -> ir.Record | None:
    """The record whose destructor runs when a variable goes out of scope."""
    shape = variable.type
    while shape.shape is ir.Shape.ARRAY and shape.element is not None:
        shape = shape.element
    record = program.records.get(shape.record) if shape.shape is ir.Shape.RECORD else None
    return record if record is not None and record.destructor else None


def runs_at_exit(program: ir.Program) -> bool:
    """Whether code of the file may run when the process ends: destructors, or what it asked for."""
    known = _RUNS_AT_EXIT.get(id(program))
    if known is None or known[0] is not program:
        _RUNS_AT_EXIT.clear()
        known = _RUNS_AT_EXIT[id(program)] = (program, _runs_at_exit(program))
    return known[1]


def _runs_at_exit(program: ir.Program) -> bool:
    nodes = [n for f in program.functions for n in ir.walk(f.body)]
    kept = [n.variable for n in nodes if isinstance(n, ir.Declare) and n.variable.scope is ir.Scope.STATIC]
    kept += [variable for variable, _ in program.globals]
    asked = any(isinstance(n, ir.Call) and n.name.rpartition("::")[2] in _AT_EXIT for n in nodes)
    return asked or any(destroyed(program, variable) is not None for variable in kept)


def ends_the_process(program: ir.Program, function: ir.Function) -> bool:
    """Whether nothing of the program's runs any more when a function is left: it is ``main``, without objects."""
    nodes = ir.walk(function.body) if function.name == "main" else ()
    objects = any(isinstance(n, ir.Declare) and destroyed(program, n.variable) for n in nodes)
    return function.name == "main" and not objects


def may_return(program: ir.Program, function: ir.Function, statement: ir.Stmt) -> bool:
    """Whether a statement may leave its function and the process goes on: not so in ``main``, if nothing runs there."""
    leaves = any(isinstance(n, ir.Leave) and n.how in ("return", "throw") for n in ir.walk(statement))
    return leaves and not (ends_the_process(program, function) and leaves_where_it_failed(statement))


def leaves_if_it_went_well(statement: ir.Stmt) -> bool:
    """Whether what stands behind a statement is reached only where a call has failed."""
    which = where_it_failed(statement.condition) if isinstance(statement, ir.If) else None
    if not isinstance(statement, ir.If) or which is None:
        return False
    last = statement.other if which else statement.then
    while isinstance(last, ir.Block) and last.body:
        last = last.body[-1]
    return isinstance(last, ir.Leave)


def never_comes_back(branch: ir.Stmt) -> bool:
    """Whether a branch ends the process by its last statement, and has no other way out: behind what cleans up there
    only C's own functions print, which throw nothing.
    """
    statements = list(_flat(branch))
    last = statements[-1].expression if statements and isinstance(statements[-1], ir.Evaluate) else None
    if not (isinstance(last, ir.Call) and last.standard and last.name.rpartition("::")[2] in ENDS):
        return False
    may_call = SAYS | NAMES_ERRORS | CLEANS
    for statement in statements:
        nodes = list(ir.walk(statement))
        calls = [n for n in nodes if isinstance(n, ir.Call)]
        names = {call.name.rpartition("::")[2] for call in calls}
        if not names.isdisjoint(CLEANS):
            may_call -= {"operator<<"}
        if not names <= may_call or any(not call.standard or call.runs for call in calls):
            return False
        if any(isinstance(n, (ir.Leave, ir.New, ir.Launch, ir.Obstacle, ir.Unknown)) for n in nodes):
            return False
    return True


def _flat(statement: ir.Stmt) -> Iterator[ir.Stmt]:
    if isinstance(statement, ir.Block):
        for inner in statement.body:
            yield from _flat(inner)
    else:
        yield statement


def leaves_where_it_failed(statement: ir.Stmt) -> bool:
    """Whether a statement has ways out of its function, and takes each of them only where a call has failed."""
    ways = list(_ways_out(statement, failed=False))
    return bool(ways) and all(ways)


def _ways_out(one: ir.Stmt | ir.Expr, *, failed: bool) -> Iterator[bool]:
    """For each way out in a statement, whether it is taken only where a call has failed."""
    if isinstance(one, ir.Leave) and one.how in ("return", "throw"):
        yield failed
    arms: dict[int, bool] = {}
    if isinstance(one, ir.If) and (which := where_it_failed(one.condition)) is not None:
        arms[id(one.then if which else one.other)] = True
    for inner in ir.children(one):
        yield from _ways_out(inner, failed=failed or id(inner) in arms)


def _is_status(value: ir.Expr) -> bool:
    """Whether a number is the status that a call of CUDA or its libraries has returned; 0 is success."""
    return isinstance(value, ir.Cast) and value.source is not None and value.source.spelling in _STATUS
