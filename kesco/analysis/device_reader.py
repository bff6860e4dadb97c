"""Device LLVM IR as plain values, read once through llvmlite: text → the nouns of `device_ir`.

In: the text of a module, as clang prints it. Out: a `DeviceModule`, which hands out a `Function` per name (read when
first asked for, then kept) and a `Global` per symbol.

A stage of its own because llvmlite is the only way in to LLVM and the only slow part: behind this door there are
tuples, integers and strings, and nothing else in kesco knows how LLVM spells things.

1. Parse, let LLVM verify and print the module again, so that what regular expressions meet is LLVM's one spelling.
2. From that text take kernels (calling convention ``ptx_kernel``) and global variables with the names they mention.
3. Per function, number the values (*slots*: parameters, instructions, constants that matter) and keep each instruction
   that can move a pointer or touch memory as one `Instr`; control flow, comparisons and floating point are dropped.

It refuses text that LLVM rejects, and judges nothing: an opcode it has no word for becomes ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kesco.analysis.device_calls import Behaviour, assembly_behaviour, callee_behaviour, unseen
from kesco.analysis.device_ir import NOTHING, Constant, Function, Global, Instr, Param, Shape
from kesco.analysis.device_layouts import layout_of
from kesco.analysis.device_names import NAME, bare, display_name
from kesco.analysis.device_spins import Spins
from kesco.analysis.device_tags import declared_pointers
from kesco.analysis.footprints import footprints
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.ir.effects import Footprint

_NAMES = re.compile(NAME)
_KERNEL = re.compile(rf"^define\b[^\n@]*\bptx_kernel\b[^\n@]*{NAME}\(", re.MULTILINE)
_GLOBAL = re.compile(rf"^{NAME} = (.*)$", re.MULTILINE)
_KIND = re.compile(r"\b(global|constant|alias|ifunc)\b")
_SPACE = re.compile(r"\baddrspace\((\d+)\)")
_BYTE_STEP = re.compile(r"getelementptr [^,(]*\bi8, ")  # an instruction
_BYTE_OFFSET = re.compile(r"^[^(]*getelementptr [^(]*\(i8, [^(]*(?:\([^()]*\)[^()]*)?, i64 (-?\d+)\)$")  # an expression

# Results of these cannot hold a pointer: comparisons, control flow, floating point arithmetic.
_DROPPED = frozenset(
    "br switch unreachable icmp fcmp fence"
    " fadd fsub fmul fdiv frem fneg fptrunc fpext sitofp uitofp fptosi fptoui".split()
)
_MOVES = frozenset(
    "phi freeze trunc zext sext ptrtoint ptrtoaddr bitcast addrspacecast mul udiv sdiv urem srem shl lshr ashr xor"
    " select extractvalue insertvalue extractelement insertelement shufflevector".split()
)
_NULLS = frozenset("constant_pointer_null undef_value poison_value constant_aggregate_zero".split())
_NUMBERS = frozenset("constant_int constant_fp constant_data_array constant_data_vector metadata_as_value".split())
_UNSIZED = frozenset(("void", "token", "metadata", "label"))
_PLAIN = {
    "add": "offset",
    "or": "offset",
    "and": "offset",
    "sub": "sub",
    "inttoptr": "inttoptr",
    "ret": "ret",
}


class DeviceModule:
    """A parsed module; see the module's docstring."""

    def __init__(self, ir_text: str) -> None:
        import llvmlite.binding as llvm  # takes 50 ms, which only a run that has kernels to analyse should pay

        try:
            self._module: Any = llvm.parse_assembly(ir_text)
            self._module.verify()
        except RuntimeError as error:
            message = f"LLVM cannot read the device code: {' '.join(str(error).split())}"
            raise InputError(
                Diagnostic(
                    "K110",
                    Severity.ERROR,
                    message,
                    help="use a clang whose LLVM is not newer than llvmlite's",
                )
            ) from error
        self.layout: Any = llvm.create_target_data(self._module.data_layout)
        self._structs: dict[str, Any] = {t.name: t for t in self._module.struct_types if t.name}
        text = str(self._module)
        self.kernels = tuple(sorted(bare(n) for n in _KERNEL.findall(text)))
        self.aliases: dict[str, tuple[str, ...]] = {}
        self.globals: dict[str, Global] = {}
        self.texts: dict[str, str] = {}  # initializers of constants, for format strings
        for name, rest in _GLOBAL.findall(text):
            self._add_global(bare(name), rest)
        self._declared = declared_pointers(text)
        self._functions: dict[str, Function | None] = {}
        self._spins = Spins(self.body)
        self._behaviours: dict[str, Behaviour] = {}
        self._shapes: dict[int, Shape] = {}
        self._constants: dict[int, Constant | Behaviour | str | None] = {}

    def _add_global(self, name: str, rest: str) -> None:
        kind = _KIND.search(rest)
        if kind is None:
            return
        names = tuple(dict.fromkeys(bare(n) for n in _NAMES.findall(rest, kind.end())))
        if kind[1] in ("alias", "ifunc"):
            self.aliases[name] = names
            return
        head = rest[: kind.start()].split()
        space = _SPACE.search(rest, 0, kind.start())
        declared = "external" in head or "extern_weak" in head
        changeable = declared or "externally_initialized" in head or "weak" in head
        fixed = kind[1] == "constant" and not changeable
        self.globals[name] = Global(name, int(space[1]) if space else 0, fixed, declared, names)
        if fixed:
            self.texts[name] = rest

    def targets(self, name: str) -> tuple[str, ...]:
        """The name, or what it is an alias of."""
        seen: list[str] = []
        todo = [name]
        while todo:
            one = todo.pop()
            if one in self.aliases and one not in seen:
                todo += self.aliases[one]
            seen.append(one)
        return tuple(n for n in seen if n not in self.aliases)

    def function(self, name: str) -> Function | None:
        """The function of that name if it has a body here."""
        if name not in self._functions:
            self._functions[name] = None if (ref := self.body(name)) is None else self._read(name, ref)
        return self._functions[name]

    def body(self, name: str) -> Any:
        """The function as LLVM has it; None where it has no body here."""
        try:
            ref = self._module.get_function(name)
            return None if ref.is_declaration else ref
        except NameError:
            return None

    def is_replaceable(self, name: str) -> bool:
        """Whether the linker may put another file's function of that name in its place."""
        return self._module.get_function(name).linkage.name in ("weak_any", "linkonce_any")

    def keeps_addresses(self, name: str) -> bool:
        """Whether a function may store the address of what one of its parameters points to, or of what is in one."""
        pointers = (a for a in self._module.get_function(name).arguments if a.type.is_pointer)
        return any(b"captures(none)" not in a.attributes for a in pointers)

    def parameter_sizes(self, name: str) -> tuple[int, ...] | None:
        """The sizes of a function's parameters as the caller passes them; None where one cannot be told."""
        sizes = []
        for argument in self._module.get_function(name).arguments:
            param = self.param(argument)
            if param.byval and param.pointers is None:
                return None
            sizes.append(param.byval or self.layout.get_abi_size(argument.type))
        return tuple(sizes)

    def footprints(self, name: str) -> dict[int, Footprint]:
        """The footprints of a kernel's pointer parameters, by index."""
        return footprints(self._module.get_function(name), self.layout)

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

    def _read(self, name: str, ref: Any) -> Function:
        slot: dict[int, int] = {}  # a value's identity (llvmlite hashes by address) to its slot
        params = []
        for argument in ref.arguments:
            slot[hash(argument)] = len(slot)
            params.append(self.param(argument))
        declared: set[int] = set()
        tags = self._declared.get(name, [])
        if any(tags):
            loads = [i for b in ref.blocks for i in b.instructions if i.opcode == "load" and i.type.is_pointer]
            if len(loads) == len(tags):
                declared = {hash(one) for one, tagged in zip(loads, tags, strict=True) if tagged}
        todo: list[tuple[int, str, Any]] = []
        ignored: set[int] = set()
        for block in _in_order(ref):
            for opcode, instruction in block:
                if opcode in _DROPPED:
                    ignored.add(hash(instruction))
                else:
                    slot[hash(instruction)] = len(slot)
                    todo.append((len(slot) - 1, opcode, instruction))
        reader = _Operands(self, slot, ignored, declared)
        instrs = [made for one in todo if (made := self._instr(*one, reader)) is not None]
        straight = all(a < i.result for i in instrs for a in i.args if a < reader.first_constant)
        constants = tuple(reader.constants.items())
        return Function(name, tuple(params), tuple(instrs), constants, reader.next, straight)

    def param(self, argument: Any) -> Param:
        """What is known of a function's parameter."""
        for attribute in argument.attributes:
            if attribute.startswith(b"byval("):
                spelled = attribute.decode()[len("byval(") : -1]
                struct = self._structs.get(bare(spelled[1:])) if spelled.startswith("%") else None
                if struct is None:
                    return Param(True, 1 << 20, None)
                size = max(1, self.layout.get_abi_size(struct))
                layout = layout_of(struct, self.layout)
                return Param(True, size, layout.pointers, layout.raw)
        return Param(bool(argument.type.is_pointer))

    def _shape_of(self, type_: Any) -> Shape:
        key = hash(type_)
        if key not in self._shapes:
            spelled = str(type_)
            size = 0 if spelled in _UNSIZED else self.layout.get_abi_size(type_)
            pointer = "ptr" in spelled or "%" in spelled
            floats = not pointer and not re.search(r"\bi\d", spelled)
            floating = spelled in ("void", "half", "bfloat", "float", "double")
            self._shapes[key] = Shape(size, pointer, floating, floats)
        return self._shapes[key]

    def _instr(self, result: int, opcode: str, instruction: Any, reader: _Operands) -> Instr | None:
        if opcode == "call":
            return self._call(result, instruction, reader)
        operands = list(instruction.operands)
        if opcode == "select":
            operands = operands[1:]  # not the condition
        elif opcode in ("insertelement", "extractelement"):
            operands = operands[:-1]  # not the index
        args = tuple(reader.slot(o) for o in operands)
        if opcode == "load":
            shape = self._shape_of(instruction.type)
            return Instr("load", result, args, shape._replace(declared=hash(instruction) in reader.declared))
        if opcode == "store":
            return Instr("store", result, args, self._shape_of(operands[0].type))
        if opcode == "getelementptr":
            return self._gep(result, instruction, operands, args, reader)
        if opcode in _MOVES:
            return Instr("move", result, args) if any(a >= 0 for a in args) else None
        if opcode in ("atomicrmw", "cmpxchg"):
            return Instr("atomic", result, args, self._shape_of(operands[1].type))
        if opcode == "alloca":
            return Instr("alloca", result, ())
        if opcode in _PLAIN:
            return Instr(_PLAIN[opcode], result, args)
        return Instr("unknown", result, args, call=opcode)

    def _gep(
        self, result: int, instruction: Any, operands: list[Any], args: tuple[int, ...], reader: _Operands
    ) -> Instr:
        offset = self.constant_step(instruction, operands)
        known = self.constant(operands[0]) if args[0] >= reader.first_constant else None
        null = isinstance(known, Constant) and known.null
        return Instr("gep", result, args, offset=offset, null_base=null)

    def constant_step(self, instruction: Any, operands: Sequence[Any]) -> int | None:
        """How many bytes address arithmetic adds; None where that is not the same number each time."""
        steps = [self._integer(o) for o in operands[1:]]
        if all(step == 0 for step in steps):
            return 0
        return steps[0] if len(steps) == 1 and _BYTE_STEP.search(str(instruction)) else None

    def _call(self, result: int, instruction: Any, reader: _Operands) -> Instr | None:
        *operands, callee = instruction.operands
        target = self.callee(callee)
        if isinstance(target, Behaviour) and target.plain and not operands:
            return None
        args = tuple(reader.slot(o) for o in operands)
        if isinstance(target, Behaviour) and target.plain:
            return Instr("move", result, args) if any(a >= 0 for a in args) else None
        lengths = tuple(self._integer(o) for o in operands)
        return Instr("call", result, args, self._shape_of(instruction.type), call=target, lengths=lengths)

    def callee(self, callee: Any) -> str | Behaviour:
        """The name of a function with a body, or what is known of anything else that is called."""
        known = self.constant(callee) if callee.is_constant or _kind(callee) == "inline_asm" else None
        if isinstance(known, Behaviour):
            return known
        names = (known,) if isinstance(known, str) else known.names if isinstance(known, Constant) else ()
        if len(names) != 1:
            return unseen("calls a function through a pointer")
        real = self.targets(names[0])
        name = real[0] if len(real) == 1 else names[0]
        if name not in self._behaviours:
            try:
                ref = self._module.get_function(name)
            except NameError:
                return callee_behaviour(name, "", ())
            if not ref.is_declaration and self.is_replaceable(name):
                return unseen(f"calls {display_name(name)}, which another file may replace")
            if not ref.is_declaration:
                return name
            params = tuple((bool(a.type.is_pointer), b" ".join(a.attributes).decode()) for a in ref.arguments)
            self._behaviours[name] = callee_behaviour(name, b" ".join(ref.attributes).decode(), params)
        return self._behaviours[name]

    def _integer(self, operand: Any) -> int | None:
        if operand.is_constant and _kind(operand) == "constant_int":
            return int(operand.get_constant_value(signed_int=True))
        return None

    def constant(self, operand: Any) -> Constant | Behaviour | str | None:
        """What a constant operand means: None if it cannot be a pointer, a function's name, an inline assembly."""
        key = hash(operand)
        if key not in self._constants:
            self._constants[key] = self._classify(_kind(operand), operand)
        return self._constants[key]

    def _classify(self, kind: str, operand: Any) -> Constant | Behaviour | str | None:
        if kind == "function":
            return str(operand.name)
        if kind == "inline_asm":
            return assembly_behaviour(str(operand))
        if kind in ("global_variable", "global_alias", "global_ifunc"):
            return Constant((str(operand.name),))
        if kind in _NULLS:
            return Constant(null=True)
        if kind in _NUMBERS:
            return None
        return constant_from_text(str(operand))


def _kind(value: Any) -> str:
    try:
        return str(value.value_kind.name)
    except ValueError:  # a kind that llvmlite has no name for
        return "other"


def constant_from_text(text: str) -> Constant:
    """A constant expression or aggregate, from LLVM's spelling of it."""
    names = tuple(dict.fromkeys(bare(n) for n in _NAMES.findall(text)))
    offset: int | None = 0
    if "getelementptr" in text or len(names) > 1 or "sub (" in text or "add (" in text:
        step = _BYTE_OFFSET.match(text)
        offset = int(step[1]) if step and len(names) == 1 and text.count("getelementptr") == 1 else None
    absolute = not names and "inttoptr" in text
    return Constant(names, offset, null=not names and not absolute, absolute=absolute)


def _in_order(function: Any) -> list[list[tuple[str, Any]]]:
    """The instructions, block by block, so that a value comes before its uses wherever the control flow allows."""
    blocks: dict[int, list[tuple[str, Any]]] = {
        hash(block): [(i.opcode, i) for i in block.instructions] for block in function.blocks
    }
    keys = list(blocks)
    after: list[int] = []  # postorder
    seen: set[int] = set()
    todo = [(keys[0], False)]
    while todo:
        key, done = todo.pop()
        if done:
            after.append(key)
        elif key not in seen:
            seen.add(key)
            todo.append((key, True))
            todo += [(k, False) for o in blocks[key][-1][1].operands if (k := hash(o)) in blocks and k not in seen]
    order = after[::-1] + [key for key in keys if key not in seen]
    return [blocks[key] for key in order]


class _Operands:
    """Slots of one function's operands; constants that may be pointers get theirs when first met."""

    def __init__(self, module: DeviceModule, slot: dict[int, int], ignored: set[int], declared: set[int]) -> None:
        self._module, self._slot, self._ignored, self.declared = module, slot, ignored, declared
        self.first_constant = self.next = len(slot)
        self.constants: dict[int, Constant] = {}

    def slot(self, operand: Any) -> int:
        key = hash(operand)
        found = self._slot.get(key)
        if found is not None:
            return found
        known = None if key in self._ignored else self._module.constant(operand)
        if isinstance(known, str):
            known = Constant((known,))
        if not isinstance(known, Constant):
            self._slot[key] = NOTHING
            return NOTHING
        self._slot[key] = self.next
        self.constants[self.next] = known
        self.next += 1
        return self.next - 1
