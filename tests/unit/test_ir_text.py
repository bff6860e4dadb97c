"""The printable form of each noun, letter by letter: golden tests of the stages stand on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path

import networkx as nx
import pytest

from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, Access, AccessMode, Buffer, BufferKind
from kesco.ir.dfg import Dependence, DependenceKind, Dfg
from kesco.ir.effects import KernelEffects, ParamEffect, RootEffect
from kesco.ir.flow import Handle, Iteration, Region, Role, Site, SiteKind
from kesco.ir.schedule import Schedule
from kesco.ir.syncplan import Join, RemovedWait, SyncPlan, Wait
from kesco.ir.text import dump_text
from kesco.pipeline import FunctionResult
from kesco.source import Span
from kesco.toolchain.model import Choice, Toolchain

R, W, RW = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE
INT = ir.Type(ir.Shape.INTEGER, "int")
POINTER = ir.Type(ir.Shape.POINTER, "float *", INT)


def at(line: int, column: int = 3, path: str = "a.cu") -> Span:
    return Span(path, line, line + 1, line, column)


def variable(name: str, kind: ir.Type = INT, scope: ir.Scope = ir.Scope.LOCAL) -> ir.Variable:
    return ir.Variable(f"{name}@1", name, kind, scope, at(1))


def name(of: str) -> ir.Name:
    return ir.Name(variable(of), at(1))


def call(to: str, *arguments: ir.Expr, **more: object) -> ir.Call:
    return ir.Call(to, to, arguments, at(1), 7, **more)


ONE, TWO = ir.Constant(1), ir.Constant(2)
KERNEL = ir.Kernel("blur", ("_Z4blurPf",))

EXPRESSIONS = [
    (ONE, "1"),
    (name("x"), "x"),
    (ir.FunctionName("f()", "f"), "f"),
    (ir.Select(name("s"), "a", False, INT), "s.a"),
    (ir.Select(name("s"), "a", True, INT), "s->a"),
    (ir.Select(None, "a", True, INT), "this->a"),
    (ir.Subscript(name("p"), ONE, False, at(1)), "p[1]"),
    (ir.Dereference(name("p"), at(1)), "*p"),
    (ir.AddressOf(name("x")), "&x"),
    (ir.Decay(name("a")), "a"),
    (ir.Binary("+", ONE, TWO), "(1 + 2)"),
    (ir.Unary("!", name("x")), "!x"),
    (ir.Assign(name("x"), "", ONE, at(1)), "x = 1"),
    (ir.Assign(name("x"), "+", ONE, at(1), post=True), "x += 1 (afterwards)"),
    (ir.Branch(name("x"), ONE, TWO), "(x ? 1 : 2)"),
    (ir.Cast(name("p"), POINTER), "(float *)p"),
    (ir.InitList((ONE, TWO)), "{1, 2}"),
    (ir.Literal("string"), "string"),
    (ir.Literal(), "literal"),
    (ir.New((ONE,), at(1)), "new(1)"),
    (call("cudaFree", name("p")), "cudaFree(p) @7"),
    (call("", receiver=name("v")), "v.(pointer)() @7"),
    (ir.Launch(KERNEL, (ONE, TWO), (name("p"),), at(1), 9), "blur<<<1, 2>>>(p) @9"),
    (ir.Unknown((name("x"), ONE), "lambda", at(1)), "unknown[lambda](x, 1)"),
]


@pytest.mark.parametrize(("expression", "text"), EXPRESSIONS, ids=[t for _, t in EXPRESSIONS])
def test_expressions_look_like_c(expression: ir.Expr, text: str) -> None:
    assert dump_text(expression) == text


def test_every_kind_of_expression_has_a_form() -> None:
    kinds = {c for c in vars(ir).values() if isinstance(c, type) and issubclass(c, ir.Expr)} - {ir.Expr}
    assert kinds == {type(expression) for expression, _ in EXPRESSIONS}


def say(line: int, expression: ir.Expr = ONE) -> ir.Stmt:
    return ir.Evaluate(at(line), expression)


STATEMENTS = [
    (ir.Block(at(1), (say(2), ir.Block(at(3), (say(4),)))), "2:3 1\n4:3 1"),
    (ir.Declare(at(2), variable("x"), None), "2:3 int x"),
    (ir.Declare(at(2), variable("x", INT, ir.Scope.STATIC), ONE), "2:3 static int x = 1"),
    (ir.If(at(2), (say(1),), name("x"), say(3), say(4)), "1:3 1\n2:3 if x\n  3:3 1\nelse\n  4:3 1"),
    (
        ir.Loop(at(2), 5, (say(1),), name("x"), TWO, say(3)),
        "1:3 1\n2:3 loop 5 while x step 2\n  3:3 1",
    ),
    (ir.Loop(at(2), 5, (), None, None, say(3), True), "2:3 loop 5 for ever, tested after\n  3:3 1"),
    (
        ir.Switch(at(2), (), name("x"), ir.Block(at(2), (ir.Case(at(3), 4, say(3)), ir.Case(at(5), None, say(5))))),
        "2:3 switch x\n  3:3 case 4\n    3:3 1\n  5:3 default\n    5:3 1",
    ),
    (ir.Leave(at(2), "return", ONE, 8), "2:3 return 1 @8"),
    (ir.Leave(at(2), "break"), "2:3 break"),
    (ir.Obstacle(at(2), "goto"), "2:3 obstacle: goto"),
    (ir.Case(at(2), 1, say(3)), "2:3 case 1\n  3:3 1"),
    (say(2), "2:3 1"),
]


@pytest.mark.parametrize(("statement", "text"), STATEMENTS, ids=[type(s).__name__ for s, _ in STATEMENTS])
def test_statements_are_a_tree_with_places(statement: ir.Stmt, text: str) -> None:
    assert dump_text(statement) == text


def test_every_kind_of_statement_has_a_form() -> None:
    kinds = {c for c in vars(ir).values() if isinstance(c, type) and issubclass(c, ir.Stmt)} - {ir.Stmt}
    assert kinds == {type(statement) for statement, _ in STATEMENTS}


def test_programs() -> None:
    parameter = variable("argc", INT, ir.Scope.PARAMETER)
    header = at(9, 1, "/somewhere/else/help.cuh")
    operation = ir.Operation(1, at(4), None, False, False, None, stuck="it is part of a condition")
    program = ir.Program(
        "a.cu",
        b"",
        (
            ir.Function("help", "help", (), ir.Block(header, ()), header, False, False, here=False),
            ir.Function("main", "main", (parameter,), ir.Block(at(2), (say(3),)), at(2, 1), True, False, True, "S"),
        ),
        ((variable("g", POINTER, ir.Scope.GLOBAL), ONE),),
        {
            "S": ir.Record("S", (ir.Field("p", POINTER, 8),), True, False),
            "std::v": ir.Record("std::v", (), True, True),
        },
        (operation, ir.Operation(2, header, None, False, False, None, stuck="it is elsewhere")),
        (("openmp", at(5)),),
        ("blur",),
    )
    assert dump_text(program).splitlines() == [
        "program a.cu",
        "construct openmp at 5:3",
        "kernels blur",
        "record S: float * p at 8, destructor",
        "global global float * g = 1",
        "function main(int argc) at 2:1, internal, template, method of S",
        "  3:3 1",
        "function help at help.cuh:9:1, not edited",
        "operation @1 at 4:3: it is part of a condition",
    ]


def test_effects_are_one_line_a_kernel_ordered_by_symbol() -> None:
    plain = (ParamEffect(0, ((0, RootEffect(R)),)), ParamEffect(1), ParamEffect(2, ((0, RootEffect(W, RW)),)))
    struct = (ParamEffect(0, ((0, RootEffect(R)), (8, RootEffect(W)))),)
    every = KernelEffects("_Z1bS", "b", struct, (("t", RootEffect(W)),), "unseen", frozenset({"printf", "clock"}), 2, 3)
    mapping = {
        "z": KernelEffects("_Z1z", "z", keeps=False),
        "b": every,
        "a": KernelEffects("_Z1a", "a", plain, keeps=False),
    }
    assert dump_text(mapping).splitlines() == [
        "a [_Z1a]: 1 r, 3 w deep rw",
        "b [_Z1bS]: 1 {0: r, 8: w}; symbols t w; order clock, printf; outputs 2; priority 3; may keep addresses; "
        "opaque: unseen",
        "z [_Z1z]: no parameter",
    ]


A, B = Buffer("alloc:1", "a", BufferKind.DEVICE), Buffer("alloc:2", "b", BufferKind.DEVICE)


def area(**more: object) -> Region:
    trip = (Iteration(4, "i", 1, 3, 2, 1, 1),)
    touches = (Access(A, W, "parameter 1"), Access(B, R))
    others = (Access(A, R), Access(UNKNOWN, RW))
    sites = (
        Site(0, -1, "entry", SiteKind.BOUNDARY, Role.ENTRY, at(1, 1)),
        Site(1, 5, "k#1", SiteKind.KERNEL, Role.MOVABLE, at(2), trip, touches),
        Site(
            2, 6, "k#2", SiteKind.KERNEL, Role.MOVABLE, at(3), (), others, "a note", 2,
            Handle("s", "s", False), Handle("e", "e", True, False), True, 4096,
        ),
        Site(3, 9, "end", SiteKind.BOUNDARY, Role.EXIT, at(4)),
    )  # fmt: skip
    return Region("work", at(1, 1), sites, ((1,), (2,), (1, 3), ()), **more)


def test_regions_are_one_line_a_site() -> None:
    text = dump_text((area(guards=("p", "q"), serial_because="it contains goto", open=True, fresh=True),))
    assert text.splitlines() == [
        "region work at 1:1, open, on memory of its own",
        "  serial because it contains goto",
        "  guards p, q",
        "  follows its caller: no, it launches nothing",
        "  0 entry entry boundary 1:1 → 1",
        "  1 k#1 movable kernel 2:3 @5 (i = 2, 1 of 3) → 2: w a (parameter 1), r b",
        "  2 k#2 movable kernel 3:3 @6 → 1 3; stream s non-blocking; event e uncertain; priority 2; foreign; 4096 bytes"
        ": r a, rw unknown memory; note: a note",
        "  3 end exit boundary 4:3 @9 → none",
    ]


def outcome(left_because: str = "") -> FunctionResult:
    one = Dependence(1, 2, DependenceKind.RAW, A)
    back = Dependence(2, 1, DependenceKind.WAR, A, True)
    graph = nx.DiGraph([(1, 2), (2, 1)])
    plan = SyncPlan(
        (1,),
        (Wait(1, 2, (one,)), Wait(2, 1, (back,))),
        (Join(3, (0, 1)),),
        (RemovedWait(2, 1, "luck"),),
        (1,),
    )
    dfg = Dfg(area(), nx.freeze(graph), (one, back))
    return FunctionResult(area(), dfg, Schedule("kesco", 2, ((1, 0), (2, 1)), (1, 2)), plan, 2, left_because)


def test_functions_have_dependences_schedule_and_plan() -> None:
    assert dump_text((outcome(),)).splitlines() == [
        "function work at 1:1: rewritten, width 2",
        "  dependences of 1 2",
        "    1 → 2 RAW on a: k#1 writes it, k#2 reads it",
        "    2 → 1 WAR on a: k#2 reads it (in an earlier iteration), k#1 writes it",
        "  schedule kesco, streams 2, order 1 2",
        "    stream 0: 1",
        "    stream 1: 2",
        "  plan, events 1, fences 1, stretches none",
        "    wait 1 → 2: RAW on a",
        "    wait 2 → 1: WAR on a carried",
        "    join before 3: streams 0 1",
        "    no wait 2 → 1: luck",
    ]
    assert dump_text(outcome("it contains goto")).startswith("function work at 1:1: left because it contains goto")


@pytest.mark.parametrize("part", ["region", "dfg", "schedule", "plan"])
def test_the_parts_of_a_function_have_a_form_of_their_own(part: str) -> None:
    text = dump_text(getattr(outcome(), part))
    assert text and "object at 0x" not in text


def test_toolchains_are_their_choices() -> None:
    choices = (Choice("clang", "clang-22", "system", "the newest", ("clang-18: too old",)),)
    parts: dict[str, object] = {one.name: None for one in fields(Toolchain) if one.name != "choices"}
    text = dump_text(Toolchain(**parts, choices=choices))  # type: ignore[arg-type]
    assert text == "clang: clang-22 (system; the newest)\n  not clang-18: too old"


def test_text_is_itself() -> None:
    assert dump_text(b"int x;\n") == "int x;\n"
    assert dump_text(b"caf\xe9") == "caf�"


def test_other_values_are_written_out_in_a_fixed_order() -> None:
    assert dump_text(frozenset("hgfedcba")) == "{" + ", ".join(map(repr, "abcdefgh")) + "}"
    assert (
        dump_text(A) == "Buffer(key='alloc:1', name='a', kind=DEVICE, span=None, bytes=None, length=None, apart=False,"
        " fixed=False)"
    )
    assert dump_text(()) == ""


def test_what_has_no_fixed_form_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd:
        inner: object

    with pytest.raises(TypeError, match="no printable form of object"):
        dump_text(Odd(object()))


def test_a_place_that_is_not_unicode_can_be_written() -> None:
    dump_text(ir.Program("caf\udce9.cu", b"", (), (), {}, ())).encode()


def test_no_noun_of_the_ir_is_left_out() -> None:
    """A field that is added to a noun must be seen here, or knowingly left out."""
    source = Path(dump_text.__code__.co_filename).read_text("utf-8")
    unseen = {
        Site: set(),
        Region: {"not_followed", "general", "kernels"},  # summaries have the first two; what decides is of kernels
        SyncPlan: set(),
        Schedule: set(),
        Wait: set(),
        Join: set(),
        RemovedWait: set(),
        KernelEffects: set(),
        Iteration: {"loop", "first", "step"},
        Handle: {"key"},
    }
    for noun, left_out in unseen.items():
        for one in fields(noun):
            assert one.name in left_out or re.search(rf"\.{one.name}\b", source), f"{noun.__name__}.{one.name}"
