"""The reader of LLVM IR: what LLVM says of a module is what the values say."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from kesco.errors import InputError
from kesco.llvm.canonical import canonical
from kesco.llvm.layouts import layout_of
from kesco.llvm.module import Module
from kesco.llvm.types import BIT, POINTER, Type
from kesco.llvm.values import UNREAD, Aggregate, Assembly, Bytes, Expression, Integer, Local, Symbol, callee

X86 = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
NVPTX = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
TYPES = (
    "i1", "i7", "i24", "i48", "i100", "half", "x86_fp80", "fp128", "ptr", "ptr addrspace(3)", "[3 x i8]",
    "{ i8, i64 }", "<{ i8, i64 }>", "{ i8, { i16, i8 }, [2 x i32] }", "<3 x float>", "<4 x i1>", "<2 x ptr>", "{}",
    "{ i8, i128 }", "{ i8, <4 x float> }", "[0 x ptr]", "{ i8, x86_fp80, i8 }", "%struct.Node",
    "{ i8, ptr, [3 x i16] }",
)  # fmt: skip

EVERYTHING = """
target triple = "x86_64-unknown-linux-gnu"
%struct.Node = type { ptr, i32 }
%"class.std::vector" = type { ptr }
$_ZTV = comdat any
@text = private constant [4 x i8] c"a\\22\\00b"
@node = global %struct.Node { ptr getelementptr inbounds (i8, ptr @text, i64 2), i32 -3 }
@table = linkonce_odr constant { [2 x ptr] } { [2 x ptr] [ptr @f, ptr @"odd name"] }, comdat($_ZTV), align 8
@unseen = external global i32
@near = addrspace(3) global float 1.5
@also = alias %struct.Node, ptr @node
@zeros = internal global [8 x i32] zeroinitializer
declare i32 @__gxx_personality_v0(...)
declare ptr @"odd name"(ptr captures(none), i32 range(i32 0, 5)) #1
declare i32 @printf(ptr, ...)
define internal fastcc noundef nonnull align 8 ptr @f(ptr byval(%struct.Node) align 8 %node, i32 noundef %n) #0
    personality ptr @__gxx_personality_v0 {
entry:
  %box = alloca %struct.Node, i32 %n, align 8
  %next = getelementptr inbounds nuw %struct.Node, ptr %node, i64 0, i32 1
  %v = load volatile i32, ptr %next, align 4
  %w = load atomic i32, ptr %next syncscope("agent") acquire, align 4
  store i32 %v, ptr %box, align 4
  %sum = add nuw nsw i32 %v, -7
  %bits = or disjoint i32 %sum, 1
  %wide = zext nneg i32 %bits to i64
  %less = icmp samesign ult i32 %sum, %w
  %both = select i1 %less, ptr %box, ptr null
  %got = atomicrmw volatile xor ptr %next, i32 1 seq_cst, align 4
  %was = atomicrmw umax ptr %next, i32 1 syncscope("block") monotonic, align 4
  %pair = cmpxchg weak ptr %next, i32 %got, i32 2 acq_rel monotonic, align 4
  %old = extractvalue { i32, i1 } %pair, 0
  %set = insertvalue { i32, i1 } %pair, i32 9, 0
  %vec = insertelement <2 x i32> zeroinitializer, i32 %old, i64 1
  %mix = shufflevector <2 x i32> %vec, <2 x i32> poison, <2 x i32> <i32 1, i32 0>
  %one = extractelement <2 x i32> %mix, i32 0
  %float = uitofp i32 %one to double
  %neg = fneg fast double %float
  %true = fcmp nnan oge double %neg, 0.000000e+00
  %same = freeze i1 %true
  fence seq_cst
  %asm = tail call i32 asm sideeffect "mov $0, ${1:c}; ret, x", "=r,i"(i32 3) #2
  switch i32 %asm, label %calls [
    i32 -1, label %more
    i32 5, label %last
  ]
calls:
  %said = call i32 (ptr, ...) @printf(ptr noundef @text, i32 1, double 2.5, ptr byval(%struct.Node) align 8 %box) #3
  %made = invoke noundef ptr @"odd name"(ptr dereferenceable(8) %both, i32 4)
          to label %more unwind label %pad
more:
  %which = phi ptr [ null, %entry ], [ %made, %calls ]
  call void @llvm.assume(i1 true) [ "align"(ptr %which, i64 8) ]
  br i1 %same, label %last, label %dead
pad:
  %caught = landingpad { ptr, i32 }
          cleanup
          catch ptr @node
  resume { ptr, i32 } %caught
last:
  ret ptr getelementptr (%struct.Node, ptr @node, i64 1, i32 1)
dead:
  unreachable
}
attributes #0 = { mustprogress "frame-pointer"="all" }
attributes #1 = { nounwind memory(argmem: read) }
attributes #2 = { noreturn }
attributes #3 = { nounwind "x"="y" }
"""

# Operands that LLVM has and that nobody asks for (bundles, what a landing pad catches), or that it has not (masks).
_UNCOUNTED = {"llvm.assume": 2, "landingpad": 1, "shufflevector": -1}


@pytest.fixture(scope="module")
def module() -> Module:
    return Module(canonical(EVERYTHING, "host"))


@pytest.mark.parametrize("layout", [X86, NVPTX])
def test_sizes_are_those_of_llvm(layout: str) -> None:
    names = [f"%t{n} = type {{ i8, {t}, i8 }}" for n, t in enumerate(TYPES)]
    uses = [f"@g{n} = external global %t{n}" for n in range(len(TYPES))]
    text = "\n".join([f'target datalayout = "{layout}"', "%struct.Node = type { i16, ptr }", *names, *uses])
    parsed = llvm.parse_assembly(text)
    sizes = llvm.create_target_data(layout)
    ours = Module(str(parsed))
    for real in (one for one in parsed.struct_types if one.name.startswith("t")):
        type_ = Type("named", name=real.name)
        assert ours.layouts.size(type_) == sizes.get_abi_size(real), TYPES[int(real.name[1:])]
        offsets = tuple(sizes.get_element_offset(real, i) for i in range(3))
        assert ours.layouts.offsets(type_) == offsets, TYPES[int(real.name[1:])]


def test_each_instruction_is_what_llvm_says(module: Module) -> None:
    function = module.function("f")
    assert function is not None and function.is_read
    read = [one for block in function.blocks for one in block.instructions]
    real = [one for block in llvm.parse_assembly(EVERYTHING).get_function("f").blocks for one in block.instructions]
    assert [one.opcode for one in read] == [one.opcode for one in real]
    for ours, theirs in zip(read, real, strict=True):
        assert (ours.result.name if ours.result else "") == theirs.name
        labels = len(ours.targets) if ours.opcode != "phi" else 0
        count = len(ours.operands) + labels + _UNCOUNTED.get(callee(ours) or ours.opcode, 0)
        assert count == len(list(theirs.operands)), ours.opcode


def test_what_instructions_say(module: Module) -> None:
    function = module.function("f")
    assert function is not None
    by = {one.result.name: one for block in function.blocks for one in block.instructions if one.result}
    assert by["v"].words == ("volatile",) and by["w"].words == ("atomic",)
    assert by["sum"].words == ("nuw", "nsw") and by["sum"].operands == (
        Local("v", POINTER),
        Integer(-7, Type("int", 32)),
    )
    assert by["less"].words == ("samesign", "ult") and by["less"].type == BIT
    assert by["got"].words == ("volatile", "xor") and by["was"].words == ("umax",)
    assert by["pair"].type == Type("struct", parts=(Type("int", 32), BIT)) and by["old"].type == Type("int", 32)
    assert by["next"].about == Type("named", name="struct.Node")
    assert by["box"].about == Type("named", name="struct.Node") and len(by["box"].operands) == 1
    assert callee(by["made"]) == "odd name" and by["made"].targets == ("more", "pad")
    assert callee(by["said"]) == "printf" and by["said"].promised == ("nounwind", '"x"="y"')
    assert by["said"].attributes[3][0].type == Type("named", name="struct.Node")
    assert isinstance(by["asm"].operands[-1], Assembly) and by["asm"].promised == ("noreturn",)
    assert by["which"].targets == ("entry", "calls")
    *_, switch = function.blocks[0].instructions
    assert switch.targets == ("calls", "more", "last") and switch.indices == (-1, 5)
    returned = next(b for b in function.blocks if b.name == "last").instructions[0].operands[0]
    assert isinstance(returned, Expression) and returned.operands[0] == Symbol("node", POINTER)


def test_heads_and_variables(module: Module) -> None:
    head, other = module.head("f"), module.head("odd name")
    assert head is not None and other is not None
    assert head.words[0] == "internal" and head.returns == POINTER and "mustprogress" in head.attributes
    assert head.parameters[0].promised("byval") is not None and head.parameters[1].value.name == "n"
    assert "memory(argmem: read)" in other.attributes and other.parameters[0].attributes[0].text == "none"
    text, node, table, near = (module.variable(name) for name in ("text", "node", "table", "near"))
    assert text is not None and isinstance(text.initial, Bytes) and text.initial.data == b'a"\0b'
    assert (
        node is not None
        and isinstance(node.initial, Aggregate)
        and node.initial.parts[1] == Integer(-3, Type("int", 32))
    )
    assert table is not None and table.kind == "constant" and "linkonce_odr" in table.words
    assert near is not None and near.space == 3
    unseen, also = module.variable("unseen"), module.variable("also")
    assert unseen is not None and unseen.initial is None
    assert also is not None and also.kind == "alias" and also.initial == Symbol("node", POINTER)


def test_functions_are_read_when_they_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module(canonical(EVERYTHING + "define void @h() {\n  ret void\n}", "host"))
    monkeypatch.setattr("kesco.llvm.module.blocks_of", lambda lines, *rest: len(lines))
    assert module.has_body("f") and not module._functions
    assert module.function("h") is not None and set(module._functions) == {"h"}


def test_what_cannot_be_read_says_so() -> None:
    text = "define void @f(ptr %0) {\n  %2 = frobnicate ptr %0, ptr %0\n  ret void\n}"
    function = Module(text).function("f")
    assert function is not None and not function.is_read
    assert function.blocks[0].name == "1" and UNREAD in function.blocks[0].instructions[0].words


def test_text_that_llvm_rejects() -> None:
    with pytest.raises(InputError) as error:
        canonical("define void @f() {\n  ret i32 0\n}", "host")
    assert error.value.diagnostics[0].code == "K110" and "host" in error.value.diagnostics[0].message


def test_places() -> None:
    text = """
define void @f() !dbg !3 {
  call void @g(), !dbg !4
  call void @g(), !dbg !6
  ret void
}
declare void @g()
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!7}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "a \\22b.cu", directory: "/home")
!2 = !DIFile(filename: "/usr/include/h.h", directory: "/home")
!3 = distinct !DISubprogram(name: "f", scope: !1, file: !1, line: 1, unit: !0)
!4 = !DILocation(line: 3, column: 7, scope: !3)
!5 = distinct !DISubprogram(name: "inner", scope: !2, file: !2, line: 9, unit: !0)
!6 = !DILocation(line: 10, column: 2, scope: !8, inlinedAt: !4)
!7 = !{i32 2, !"Debug Info Version", i32 3}
!8 = !DILexicalBlockFile(scope: !5, discriminator: 0)
"""
    module = Module(
        canonical(
            text.replace("!8 = !DILexicalBlockFile(scope: !5,", "!8 = !DILexicalBlockFile(scope: !5, file: !2,"), "host"
        )
    )
    function = module.function("f")
    assert function is not None
    first, second = (module.place(one.place) for one in function.blocks[0].instructions[:2])
    assert str(first) == '/home/a "b.cu:3:7'
    assert str(second) == "/usr/include/h.h:10:2" and second is not None and second.inlined_at == first
    assert module.place(-1) is None


def test_layout_of_what_is_passed_by_value() -> None:
    text = "%union.U = type { i64 }\n%struct.S = type { ptr, [2 x { i32, ptr }], %union.U, [16 x i8] }\n"
    module = Module(canonical(f'target datalayout = "{NVPTX}"\n{text}@g = external global %struct.S', "device"))
    layout = layout_of(Type("named", name="struct.S"), module.layouts)
    assert layout.pointers == (0, 16, 32) and layout.raw == ((40, 8), (48, 16))
