"""Device LLVM IR as the effects analysis asks for it: text → the nouns of `device_ir`.

In: the text of a module, as clang prints it. Out: a `DeviceModule`, which hands out a `Function` per name (made when
first asked for, then kept) and a `Global` per symbol.

Apart from `llvm`, which reads for both sides and judges nothing: here is what matters of a kernel's accesses.

1. Let LLVM verify and print the module again, so that it is met in LLVM's one spelling.
2. Per function, number the values (*slots*: parameters, instructions, constants that matter) and keep each instruction
   that can move a pointer or touch memory as one `Instr`; control flow, comparisons and floating point are dropped.

It refuses text that LLVM rejects. An opcode it has no word for becomes ``unknown``.
"""

from __future__ import annotations

from kesco.analysis.device_calls import Behaviour, assembly_behaviour, callee_behaviour, unseen
from kesco.analysis.device_ir import NOTHING, Constant, Function, Global, Instr, Param, Shape
from kesco.analysis.device_spins import Spins
from kesco.analysis.footprints import footprints
from kesco.ir.effects import Footprint
from kesco.llvm import values as ir
from kesco.llvm.canonical import canonical
from kesco.llvm.layouts import layout_of
from kesco.llvm.module import Module
from kesco.llvm.names import display_name
from kesco.llvm.tags import is_pointer
from kesco.llvm.types import Layouts, Type

# Results of these cannot hold a pointer: comparisons, control flow, floating point arithmetic.
_DROPPED = frozenset(
    "br switch unreachable icmp fcmp fence"
    " fadd fsub fmul fdiv frem fneg fptrunc fpext sitofp uitofp fptosi fptoui".split()
)
_MOVES = frozenset(
    "phi freeze trunc zext sext ptrtoint ptrtoaddr bitcast addrspacecast mul udiv sdiv urem srem shl lshr ashr xor"
    " select extractvalue insertvalue extractelement insertelement shufflevector".split()
)
# Which operands a result is made of, where it is not all.
_MADE_OF = {
    "select": slice(1, None),
    "insertelement": slice(0, 2),
    "extractelement": slice(0, 1),
    "shufflevector": slice(0, 2),
}
_PLAIN = {
    "add": "offset",
    "or": "offset",
    "and": "offset",
    "sub": "sub",
    "inttoptr": "inttoptr",
    "ret": "ret",
}
_REPLACED = ("weak", "linkonce")


class DeviceModule:
    """A parsed module; see the module's docstring."""

    def __init__(self, ir_text: str) -> None:
        module = self._module = Module(canonical(ir_text, "device"))
        self.kernels = tuple(sorted(n for n in module.defined() if "ptx_kernel" in self._head(n).words))
        self._functions: dict[str, Function | None] = {}
        self._globals: dict[str, Global | None] = {}
        self._spins = Spins(module.function)
        self._behaviours: dict[str, Behaviour] = {}
        self._shapes: dict[Type, Shape] = {}

    @property
    def layouts(self) -> Layouts:
        """How the module's types are laid out."""
        return self._module.layouts

    def _head(self, name: str) -> ir.Head:
        head = self._module.head(name)
        assert head is not None, name
        return head

    def variable(self, name: str) -> Global | None:
        """The global variable of that name."""
        if name not in self._globals:
            found = self._module.variable(name)
            self._globals[name] = None if found is None or found.kind in ("alias", "ifunc") else _global(found)
        return self._globals[name]

    def targets(self, name: str) -> tuple[str, ...]:
        """The name, or what it is an alias of."""
        seen: list[str] = []
        todo = [name]
        while todo:
            one = todo.pop()
            if one not in seen and (named := self._named(one)) is not None:
                todo += named
            seen.append(one)
        return tuple(n for n in seen if self._named(n) is None)

    def _named(self, name: str) -> tuple[str, ...] | None:
        found = self._module.variable(name)
        is_alias = found is not None and found.kind in ("alias", "ifunc") and found.initial is not None
        return ir.symbols_in(found.initial) if found is not None and found.initial is not None and is_alias else None

    def function(self, name: str) -> Function | None:
        """The function of that name if it has a body here."""
        if name not in self._functions:
            body = self._module.function(name)
            self._functions[name] = None if body is None else self._read(body)
        return self._functions[name]

    def body(self, name: str) -> ir.Function:
        """The function of that name, which has a body here, with its control flow."""
        function = self._module.function(name)
        assert function is not None, name
        return function

    def has_body(self, name: str) -> bool:
        """Whether there is a function of that name that has a body here."""
        return self._module.has_body(name)

    def is_replaceable(self, name: str) -> bool:
        """Whether the linker may put another file's function of that name in its place."""
        return any(word in _REPLACED for word in self._head(name).words)

    def keeps_addresses(self, name: str) -> bool:
        """Whether a function may store the address of what one of its parameters points to, or of what is in one."""
        pointers = (p for p in self._head(name).parameters if p.type.kind == "ptr")
        promised = (p.promised("captures") for p in pointers)
        return any(known is None or known.text != "none" for known in promised)

    def parameter_sizes(self, name: str) -> tuple[int, ...]:
        """The sizes of a function's parameters as the caller passes them."""
        layouts = self._module.layouts
        return tuple(self.param(one).byval or layouts.size(one.type) for one in self._head(name).parameters)

    def footprints(self, name: str) -> dict[int, Footprint]:
        """The footprints of a kernel's pointer parameters, by index."""
        function = self._module.function(name)
        return {} if function is None else footprints(function, self._module.layouts)

    def waits_for_others(self, name: str) -> bool:
        """Whether a kernel, or a function that it calls, waits for memory that somebody else changes."""
        seen, todo = {name}, [name]
        while todo:
            one = todo.pop()
            function = self.function(one)
            if function is None:
                continue
            if self._spins.waits(one):
                return True
            called = {n for i in function.instrs if isinstance(i.call, str) for n in self.targets(i.call)} - seen
            seen |= called
            todo += called
        return False

    # Reading one function

    def _read(self, function: ir.Function) -> Function:
        slot: dict[ir.Value, int] = {one.value: at for at, one in enumerate(function.parameters)}
        params = tuple(self.param(one) for one in function.parameters)
        todo: list[tuple[int, ir.Instruction]] = []
        count = len(slot)
        for block in _in_order(function):
            for instruction in block.instructions:
                if instruction.opcode in _DROPPED and ir.UNREAD not in instruction.words:
                    if instruction.result is not None:
                        slot[instruction.result] = NOTHING
                    continue
                if instruction.result is not None:
                    slot[instruction.result] = count
                todo.append((count, instruction))
                count += 1
        reader = _Operands(self, slot, count)
        instrs = [made for one in todo if (made := self._instr(*one, reader)) is not None]
        straight = all(a < i.result for i in instrs for a in i.args if a < count)
        return Function(function.name, params, tuple(instrs), tuple(reader.constants.items()), reader.next, straight)

    def param(self, parameter: ir.Parameter) -> Param:
        """What is known of a function's parameter."""
        byval = parameter.promised("byval")
        if byval is not None and byval.type is not None:
            layout = layout_of(byval.type, self._module.layouts)
            return Param(True, max(1, self._module.layouts.size(byval.type)), layout.pointers, layout.raw)
        return Param(parameter.type.kind == "ptr")

    def shape_of(self, type_: Type) -> Shape:
        """What matters of a type."""
        if type_ not in self._shapes:
            kinds = set(_kinds(type_))
            pointer = bool(kinds & {"ptr", "named"})
            floats = not pointer and "int" not in kinds
            floating = type_.kind == "void" or (type_.kind == "float" and type_.number <= 64)
            self._shapes[type_] = Shape(self._module.layouts.size(type_), pointer, floating, floats)
        return self._shapes[type_]

    def _instr(self, result: int, instruction: ir.Instruction, reader: _Operands) -> Instr | None:
        opcode = instruction.opcode
        if ir.UNREAD in instruction.words:
            return Instr("unknown", result, (), call=opcode)
        if opcode == "call":
            return self._call(result, instruction, reader)
        operands = instruction.operands[_MADE_OF.get(opcode, slice(None))]
        args = tuple(reader.slot(o) for o in operands)
        if opcode == "load":
            declared = instruction.type.kind == "ptr" and is_pointer(self._module, instruction)
            return Instr("load", result, args, self.shape_of(instruction.type)._replace(declared=declared))
        if opcode == "store":
            return Instr("store", result, args, self.shape_of(operands[0].type))
        if opcode == "getelementptr":
            return self._gep(result, instruction, args)
        if opcode in _MOVES:
            return Instr("move", result, args) if any(a >= 0 for a in args) else None
        if opcode in ("atomicrmw", "cmpxchg"):
            return Instr("atomic", result, args, self.shape_of(operands[1].type))
        if opcode == "alloca":
            return Instr("alloca", result, ())
        if opcode in _PLAIN:
            return Instr(_PLAIN[opcode], result, args)
        return Instr("unknown", result, args, call=opcode)

    def _gep(self, result: int, instruction: ir.Instruction, args: tuple[int, ...]) -> Instr:
        known = self.constant(instruction.operands[0])
        return Instr("gep", result, args, offset=self.step(instruction), null_base=known is not None and known.null)

    def step(self, instruction: ir.Instruction) -> int | None:
        """How many bytes a getelementptr adds; None where that is not the same number each time."""
        assert instruction.about is not None
        return self._module.layouts.offset(instruction.about, [_integer(one) for one in instruction.operands[1:]])

    def _call(self, result: int, instruction: ir.Instruction, reader: _Operands) -> Instr | None:
        *operands, callee = instruction.operands
        target = self.callee(callee)
        if isinstance(target, Behaviour) and target.plain and not operands:
            return None
        args = tuple(reader.slot(o) for o in operands)
        if isinstance(target, Behaviour) and target.plain:
            return Instr("move", result, args) if any(a >= 0 for a in args) else None
        lengths = tuple(_integer(o) for o in operands)
        return Instr("call", result, args, self.shape_of(instruction.type), call=target, lengths=lengths)

    def callee(self, callee: ir.Value) -> str | Behaviour:
        """The name of a function with a body, or what is known of anything else that is called."""
        if isinstance(callee, ir.Assembly):
            return assembly_behaviour(callee.text)
        names = ir.symbols_in(callee)
        if len(names) != 1:
            return unseen("calls a function through a pointer")
        real = self.targets(names[0])
        name = real[0] if len(real) == 1 else names[0]
        if name not in self._behaviours:
            head = self._module.head(name)
            if head is None:
                return callee_behaviour(name, "", ())
            if self._module.has_body(name):
                replaceable = self.is_replaceable(name)
                return unseen(f"calls {display_name(name)}, which another file may replace") if replaceable else name
            params = tuple((p.type.kind == "ptr", " ".join(a.name for a in p.attributes)) for p in head.parameters)
            self._behaviours[name] = callee_behaviour(name, " ".join(head.attributes), params)
        return self._behaviours[name]

    def constant(self, value: ir.Value) -> Constant | None:
        """What a constant operand means; None if it cannot be a pointer."""
        if isinstance(value, (ir.Local, ir.Integer, ir.Bytes, ir.Unread, ir.Assembly)):
            return None
        if isinstance(value, ir.Literal):
            return None if value.text[0] in "-0123456789" else Constant(null=True)
        names = ir.symbols_in(value)
        absolute = not names and _is_forged(value)
        return Constant(names, self._offset(value, names), null=not names and not absolute, absolute=absolute)

    def _offset(self, value: ir.Value, names: tuple[str, ...]) -> int | None:
        """How far behind the one global that it names a constant points."""
        if len(names) > 1:
            return None
        if isinstance(value, ir.Aggregate):
            return next((self._offset(p, names) for p in value.parts if ir.symbols_in(p)), 0)
        if not isinstance(value, ir.Expression):
            return 0
        if value.op == "getelementptr" and value.source is not None:
            inner = self._offset(value.operands[0], names)
            step = self._module.layouts.offset(value.source, [_integer(one) for one in value.operands[1:]])
            return None if inner is None or step is None else inner + step
        return self._offset(value.operands[0], names) if len(value.operands) == 1 else None


def _global(variable: ir.Variable) -> Global:
    declared = variable.initial is None
    changeable = declared or any(word in ("externally_initialized", "weak") for word in variable.words)
    fixed = variable.kind == "constant" and not changeable
    names = () if variable.initial is None else ir.symbols_in(variable.initial)
    text = variable.initial.data.decode("latin-1") if fixed and isinstance(variable.initial, ir.Bytes) else None
    return Global(variable.name, variable.space, fixed, declared, names, text)


def _integer(value: ir.Value) -> int | None:
    return value.value if isinstance(value, ir.Integer) else None


def _kinds(type_: Type) -> list[str]:
    """The kinds of a type and its parts."""
    return [type_.kind, *(kind for part in type_.parts for kind in _kinds(part))]


def _is_forged(value: ir.Value) -> bool:
    """Whether a constant is made of an integer that is turned into a pointer."""
    if isinstance(value, ir.Expression):
        return value.op == "inttoptr" or any(_is_forged(one) for one in value.operands)
    return isinstance(value, ir.Aggregate) and any(_is_forged(one) for one in value.parts)


def _in_order(function: ir.Function) -> list[ir.Block]:
    """The blocks, so that a value comes before its uses wherever the control flow allows."""
    blocks = {block.name: block for block in function.blocks}
    keys = list(blocks)
    after: list[str] = []  # postorder
    seen: set[str] = set()
    todo = [(keys[0], False)]
    while todo:
        key, done = todo.pop()
        if done:
            after.append(key)
        elif key not in seen:
            seen.add(key)
            todo.append((key, True))
            todo += [(k, False) for k in blocks[key].instructions[-1].targets if k not in seen]
    order = after[::-1] + [key for key in keys if key not in seen]
    return [blocks[key] for key in order]


class _Operands:
    """Slots of one function's operands; constants that may be pointers get theirs when first met."""

    def __init__(self, module: DeviceModule, slot: dict[ir.Value, int], first: int) -> None:
        self._module, self._slot = module, slot
        self.next = first
        self.constants: dict[int, Constant] = {}

    def slot(self, operand: ir.Value) -> int:
        found = self._slot.get(operand)
        if found is not None:
            return found
        known = self._module.constant(operand)
        if known is None:
            self._slot[operand] = NOTHING
            return NOTHING
        self._slot[operand] = self.next
        self.constants[self.next] = known
        self.next += 1
        return self.next - 1
