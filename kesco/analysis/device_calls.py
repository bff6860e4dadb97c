"""What a call does whose body is not visible: LLVM and NVVM intrinsics, the device runtime, inline PTX.

In: a callee's name with LLVM's attributes, or the text of an inline assembly. Out: a `Behaviour`.

A stage of its own because this is knowledge, not analysis: tables that grow with every GPU generation, and that must
fail safe. Whatever is in no table is opaque, with the reason in words.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from kesco.ir.access import AccessMode
from kesco.llvm.names import display_name

R, W, RW, NONE = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE, AccessMode.NONE


class Special(enum.Enum):
    """Calls that are more than accesses through their arguments."""

    NO = "no"
    COPY = "copy"  # memcpy(to, from, length)
    FILL = "fill"  # memset(to, value, length)
    FRESH = "fresh"  # returns new memory
    PRINTF = "printf"  # vprintf(format, arguments)


@dataclass(frozen=True, slots=True)
class Touch:
    """An access through argument `arg`: an address made of several, or of whichever may be pointers (None)."""

    arg: int | tuple[int, ...] | None
    mode: AccessMode
    shared: bool = False  # the address is certainly in shared or local memory


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a call without a visible body may do.

    Its result, and what it stores, may be made of the arguments numbered in `values` (None: all that are not addresses)
    and of whatever it read.
    """

    touches: tuple[Touch, ...] = ()
    values: tuple[int, ...] | None = None
    order: tuple[str, ...] = ()
    opaque: str = ""
    special: Special = Special.NO

    @property
    def plain(self) -> bool:
        """Whether the call only computes."""
        return self is PURE or self == PURE


PURE = Behaviour()

# Functions

_FUNCTIONS = {
    "vprintf": Behaviour(order=("printf",), special=Special.PRINTF),
    "malloc": Behaviour(order=("heap",), special=Special.FRESH),
    "__nv_aligned_device_malloc": Behaviour(order=("heap",), special=Special.FRESH),
    "free": Behaviour((Touch(0, W),), order=("heap",)),
    "__assertfail": Behaviour(order=("assert",)),
    "__assert_fail": Behaviour(order=("assert",)),
    "memcpy": Behaviour(special=Special.COPY),
    "memmove": Behaviour(special=Special.COPY),
    "memset": Behaviour(special=Special.FILL),
    "__nvvm_reflect": PURE,
    "__cxa_pure_virtual": Behaviour(order=("assert",)),
}
_LAUNCH = Behaviour(order=("launch", "unseen"), opaque="launches kernels from the device")
_FUNCTION_PREFIXES = (
    ("_Znw", Behaviour(order=("heap",), special=Special.FRESH)),  # operator new and its relatives
    ("_Zna", Behaviour(order=("heap",), special=Special.FRESH)),
    ("_Zdl", Behaviour((Touch(0, W),), order=("heap",))),
    ("_Zda", Behaviour((Touch(0, W),), order=("heap",))),
    ("cudaLaunchDevice", _LAUNCH),
    ("cudaGetParameterBuffer", _LAUNCH),
    ("__cudaCDP", _LAUNCH),
)

_TENSOR = Behaviour(opaque="accesses memory through a tensor map")
_SURFACE = Behaviour(order=("texture",), opaque="accesses memory through a surface")
_CLOCK = Behaviour(order=("clock",))
_TRAP = Behaviour(order=("assert",))

# The first prefix that fits wins; None: judge by LLVM's memory attribute alone.
_INTRINSICS: tuple[tuple[str, Behaviour | None], ...] = (
    ("llvm.memcpy.", Behaviour(special=Special.COPY)),
    ("llvm.memmove.", Behaviour(special=Special.COPY)),
    ("llvm.memset.", Behaviour(special=Special.FILL)),
    ("llvm.lifetime.", PURE),
    ("llvm.assume", PURE),
    ("llvm.dbg.", PURE),
    ("llvm.experimental.noalias.scope.decl", PURE),
    ("llvm.prefetch", PURE),
    ("llvm.stacksave", PURE),
    ("llvm.stackrestore", PURE),
    ("llvm.trap", _TRAP),
    ("llvm.debugtrap", _TRAP),
    ("llvm.ubsantrap", _TRAP),
    ("llvm.readcyclecounter", _CLOCK),
    ("llvm.readsteadycounter", _CLOCK),
    ("llvm.nvvm.read.ptx.sreg.clock", _CLOCK),
    ("llvm.nvvm.read.ptx.sreg.globaltimer", _CLOCK),
    ("llvm.nvvm.read.ptx.sreg.", PURE),
    ("llvm.nvvm.barrier", PURE),
    ("llvm.nvvm.bar.", PURE),
    ("llvm.nvvm.membar", PURE),
    ("llvm.nvvm.fence.proxy.tensormap", _TENSOR),
    ("llvm.nvvm.fence", PURE),
    ("llvm.nvvm.shfl", PURE),
    ("llvm.nvvm.vote", PURE),
    ("llvm.nvvm.match", PURE),
    ("llvm.nvvm.redux", PURE),
    ("llvm.nvvm.activemask", PURE),
    ("llvm.nvvm.elect", PURE),
    ("llvm.nvvm.exit", PURE),
    ("llvm.nvvm.nanosleep", PURE),
    ("llvm.nvvm.pm.event", PURE),
    ("llvm.nvvm.griddepcontrol", PURE),
    ("llvm.nvvm.setmaxnreg", PURE),
    ("llvm.nvvm.wgmma", PURE),
    ("llvm.nvvm.prefetch", PURE),
    ("llvm.nvvm.applypriority", PURE),
    ("llvm.nvvm.mbarrier", Behaviour((Touch(None, RW),))),
    ("llvm.nvvm.cp.async.mbarrier", Behaviour((Touch(None, RW),))),
    ("llvm.nvvm.cp.async.wait", PURE),
    ("llvm.nvvm.cp.async.commit", PURE),
    ("llvm.nvvm.cp.async.bulk.commit", PURE),
    ("llvm.nvvm.cp.async.bulk.wait", PURE),
    ("llvm.nvvm.cp.async.bulk.prefetch", PURE),
    ("llvm.nvvm.cp.async.bulk.tensor", _TENSOR),
    ("llvm.nvvm.tcgen05", Behaviour(opaque="uses tensor memory")),
    ("llvm.nvvm.tex.", Behaviour(order=("texture",))),
    ("llvm.nvvm.tld4.", Behaviour(order=("texture",))),
    ("llvm.nvvm.txq.", Behaviour(order=("texture",))),
    ("llvm.nvvm.suq.", Behaviour(order=("texture",))),
    ("llvm.nvvm.suld.", _SURFACE),
    ("llvm.nvvm.sust.", _SURFACE),
    ("llvm.nvvm.sured.", _SURFACE),
    ("llvm.", None),
)

_MEMORY = re.compile(r"\bmemory\(([^)]*)\)")
_MODES = {"none": NONE, "read": R, "write": W, "readwrite": RW}


def callee_behaviour(name: str, attributes: str, params: tuple[tuple[bool, str], ...]) -> Behaviour:
    """What calling a declared function may do; `params` says of each whether it is a pointer, and its attributes."""
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    for prefix, known in _FUNCTION_PREFIXES:
        if name.startswith(prefix):
            return known
    if name.startswith("__nv_"):  # libdevice: mathematics; sincos, frexp, modf and the like write through a pointer
        return Behaviour(tuple(Touch(i, W) for i, (pointer, _) in enumerate(params) if pointer))
    for prefix, behaviour in _INTRINSICS:
        if name.startswith(prefix):
            return behaviour if behaviour is not None else _by_attribute(name, attributes, params)
    return unseen(f"calls undefined function {display_name(name)}")


def unseen(reason: str) -> Behaviour:
    """A call of code that is not seen: it may do anything, and also print and allocate."""
    return Behaviour(order=("unseen",), opaque=reason)


def _by_attribute(name: str, attributes: str, params: tuple[tuple[bool, str], ...]) -> Behaviour:
    """LLVM's own word on an intrinsic, which is part of its definition and so, other than the source's, trusted."""
    memory = _MEMORY.search(attributes)
    if memory is None:
        return Behaviour(opaque=f"uses {name}, of which it is not known what memory it touches")
    where = {"other": NONE, "argmem": NONE}
    for part in memory[1].split(","):
        place, colon, mode = part.strip().rpartition(":")
        if colon:
            where[place.strip()] = _MODES.get(mode.strip(), RW)
        else:
            where = dict.fromkeys(where, _MODES.get(mode.strip(), RW))
    if where["other"]:
        return Behaviour(opaque=f"uses {name}, which touches memory at large")
    touches = []
    for i, (pointer, own) in enumerate(params):
        mode = where["argmem"]
        words = own.split()
        if "readnone" in words:
            mode = NONE
        elif "readonly" in words:
            mode &= R
        elif "writeonly" in words:
            mode &= W
        if pointer and mode:
            touches.append(Touch(i, mode))
    if where["argmem"] and not any(pointer for pointer, _ in params):
        return Behaviour((Touch(None, where["argmem"]),))  # pointers in vectors
    return Behaviour(tuple(touches))


# Inline PTX

_ASM = re.compile(r'asm (?:[a-z]+ )*"((?:[^"\\]|\\[0-9A-Fa-f]{2}|\\\\)*)", "([^"]*)"$')
_CLOCKS = re.compile(r"%(?:clock|globaltimer)")
_LABEL = re.compile(r"^[A-Za-z_$%][\w$%{}:]*\s*:(?!:)")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_NUMBER = re.compile(r"\$\{?(\d+)")
_OPERAND = re.compile(r"^\s*\$\{?(\d+)")
_MEMORY_OPCODES = {
    "ld": R, "ldu": R, "ldmatrix": R, "st": W, "stmatrix": W, "discard": W, "atom": RW, "red": RW, "mbarrier": RW,
}  # fmt: skip
_TEXTURES = frozenset(("tex", "tld4", "txq", "suq"))
_SURFACES = frozenset(("suld", "sust", "sured"))
_HARMLESS = frozenset(
    # arithmetic and data movement between registers
    "abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a ex2 fma fns lg2 lop3 mad"
    " mad24 madc max min mma mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct"
    " sqrt sub subc szext tanh testp vabsdiff vadd vmad vmax vmin vset vshl vshr vsub vadd2 vadd4 vsub2 vsub4 vmax2"
    " vmax4 vmin2 vmin4 vset2 vset4 vavrg2 vavrg4 vabsdiff2 vabsdiff4 xor wgmma"
    # control, synchronization, hints
    " activemask applypriority bar barrier bra brkpt createpolicy elect exit fence getctarank griddepcontrol isspacep"
    " istypep mapa match membar nanosleep pmevent prefetch prefetchu redux ret setmaxnreg shfl vote".split()
)
_CONTROL = frozenset(("bra", "bar", "barrier", "call"))  # what they name is no value
_NEAR = ".shared"  # in the opcode of what stays in the block's own memory
_NAME = re.compile(r"(?<![\w.$%])[A-Za-z_%][\w$]*")
_CONSTANT = "WARP_SZ"
_RESULT = re.compile(r"(\{[^}]*\}|[^,]*)(.*)")
_SPECIAL = re.compile(r"%(?:tid|ntid|ctaid|nctaid|laneid|warpid|smid|clock\w*|globaltimer\w*|lanemask\w*)(?:\.\w+)?")
_LOOPS = re.compile(r"(?s)([A-Za-z_$%][\w$%{}:]*)\s*:(?!:).*\bbra(?:\.uni)?\s+\1")
_LOADS = re.compile(r"(?:ld|atom)\.(?!(?:\w+\.)*shared|const|param|local)")
_DIRECTIVES = frozenset((".reg", ".pragma", ".loc", ".shared", ".local"))


def assembly_behaviour(text: str) -> Behaviour:
    """What an inline assembly may do; `text` is LLVM's spelling, ``void (ptr) asm sideeffect "...", "..."``."""
    parts = _ASM.search(text)
    if parts is None:
        return Behaviour((Touch(None, RW),), opaque="contains inline assembly that cannot be read")
    template = re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), parts[1])
    touches: list[Touch] = [Touch(None, RW)] if "*" in parts[2] else []
    order: tuple[str, ...] = ("clock",) if _CLOCKS.search(template) else ()
    opaque = ""
    statements = _statements(template)
    made = _Registers(statements, parts[2])
    if made.strange_address:
        opaque = "contains inline assembly that computes an address from what it has loaded, or from a name"
    elif made.strange_value:
        opaque = "contains inline assembly that takes the address of a name"
    if _LOOPS.search(template) and any(_LOADS.match(one) for one in statements):
        order += ("spin",)  # its own loop: whatever it waits for, another block may have to store
    for statement in statements:
        found = _statement(statement, made)
        touches += found.touches
        order += found.order
        opaque = opaque or found.opaque
    return Behaviour(
        tuple(dict.fromkeys(touches)),
        _values(template, parts[2], made.outputs),
        tuple(dict.fromkeys(order)),
        opaque,
    )


class _Registers:
    """Of which arguments the registers of an assembly are made, its outputs among them, and which hold more than that.

    `strange_address`: an address is made of what was loaded, or of a name; `strange_value`: a name is used otherwise.
    """

    def __init__(self, statements: list[str], constraints: str) -> None:
        listed = [c for c in _constraints(constraints) if c[0] != "~"]
        self.outputs = sum(1 for c in listed if c.startswith("=") and "*" not in c)
        self._made: dict[str, set[int]] = {f"${n}": set() for n in range(self.outputs)}
        for number, one in enumerate(listed):
            if one.isdigit():  # an input that is in the register of an output
                self._made.setdefault(f"${one}", set()).add(number - self.outputs)
        for one in statements:
            if one.startswith(".reg"):
                self._made.update((name, set()) for name in _NAME.findall(one.split(None, 2)[-1]))
        self._strange: set[str] = set()
        self.strange_address = self.strange_value = False
        for one in statements * 2:  # twice, for loops
            self._follow(one)

    def _follow(self, statement: str) -> None:
        opcode, _, operands = statement.partition(" ")
        head = opcode.partition(".")[0]
        if opcode.startswith(".") or head in _CONTROL:
            return
        parts = _RESULT.match(operands)
        assert parts is not None  # either part may be empty
        result, rest = parts.groups()
        results = set() if "[" in result else self._mentioned(result)[0]
        names, _ = self._mentioned(rest)
        if head in _HARMLESS:
            unknown = {name for name in names - set(self._made) if name[0] != "%"} - {_CONSTANT}
            self.strange_value = self.strange_value or bool(unknown)
            made = self.made_of(rest)
            for name in results & set(self._made):
                self._made[name].update(made)
        if head not in _HARMLESS or not names <= set(self._made) - self._strange:
            self._strange |= results
        near = _NEAR in opcode and head != "cp"
        places = [] if near or head in _HARMLESS else _BRACKET.findall(operands)
        usual = set(self._made) - self._strange
        self.strange_address = self.strange_address or any(not self._mentioned(p)[0] <= usual for p in places)

    def _mentioned(self, operands: str) -> tuple[set[str], set[int]]:
        """The registers and names in a text, and the arguments."""
        numbers = [int(n) for n in _NUMBER.findall(operands)]
        names = {*_NAME.findall(_SPECIAL.sub(" ", operands)), *(f"${n}" for n in numbers if n < self.outputs)}
        return names, {n - self.outputs for n in numbers if n >= self.outputs}

    def made_of(self, operands: str) -> tuple[int, ...]:
        """The arguments that a text's values are made of."""
        names, arguments = self._mentioned(operands)
        return tuple(sorted(arguments.union(*(self._made.get(name, ()) for name in names))))

    def place(self, inside: str) -> int | tuple[int, ...]:
        """The argument that a bracket's address is, or those that it was computed from within the assembly."""
        operand = _OPERAND.match(inside)
        whole = operand is not None and int(operand[1]) >= self.outputs and not self._mentioned(inside)[0]
        return int(operand[1]) - self.outputs if operand is not None and whole else self.made_of(inside)


def _values(template: str, constraints: str, outputs: int) -> tuple[int, ...]:
    """The arguments that are used for more than an address: all but those that are only named within brackets."""
    inputs = sum(1 for c in _constraints(constraints) if c[0] not in "=~") + constraints.count("=*")
    inside = {int(n) - outputs for b in _BRACKET.findall(template) for n in _NUMBER.findall(b)}
    outside = {int(n) - outputs for n in _NUMBER.findall(_BRACKET.sub(" ", template))}
    return tuple(i for i in range(inputs) if i in outside or i not in inside)


def _constraints(text: str) -> list[str]:
    return [c for c in re.findall(r"(?:\{[^}]*\}|[^,{])+", text) if c]


def _statements(template: str) -> list[str]:
    """The PTX statements, without comments, block braces, labels and predicates."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", template, flags=re.DOTALL)
    result = []
    for raw in text.split(";"):
        statement = raw.strip().lstrip("{} \t\n")
        while label := _LABEL.match(statement):
            statement = statement[label.end() :].lstrip("{} \t\n")
        statement = re.sub(r"^@!?\S+\s+", "", statement)
        if statement.strip("{} \t\n"):
            result.append(" ".join(statement.split()))
    return result


def _statement(statement: str, made: _Registers) -> Behaviour:
    opcode = statement.split(" ", 1)[0].split("[", 1)[0]
    if opcode.startswith("."):
        known = opcode in _DIRECTIVES
        return PURE if known else Behaviour((Touch(None, RW),), opaque=f"contains inline assembly ('{opcode}')")
    head, _, rest = opcode.partition(".")
    if head in _TEXTURES:
        return Behaviour(order=("texture",))
    if head in _SURFACES:
        return _SURFACE
    if head == "trap":
        return _TRAP
    if head in _HARMLESS:
        return PURE
    if "tensor" in rest:
        return _TENSOR
    places = [made.place(b) for b in _BRACKET.findall(statement)]
    if head == "cp":
        return _copy(rest, places)
    mode = _MEMORY_OPCODES.get(head)
    if head in ("wmma", "multimem"):
        mode = {"load": R, "ld_reduce": R, "store": W, "st": W, "mma": NONE}.get(rest.split(".")[0], RW)
    if mode is None:
        order = ("unseen",) if head == "call" else ()
        return Behaviour((Touch(None, RW),), order=order, opaque=f"contains inline assembly ('{opcode}')")
    if mode is NONE:
        return PURE
    shared = ".shared" in opcode or ".local" in opcode or ".param" in opcode or head in ("ldmatrix", "stmatrix")
    return Behaviour(tuple(Touch(place, mode, shared) for place in places) or (Touch(None, mode, shared),))


def _copy(rest: str, places: list[int | tuple[int, ...]]) -> Behaviour:
    """The asynchronous copies: ``cp.async [to], [from]``, ``cp.async.bulk [to], [from], n, [barrier]``."""
    if not places or rest.startswith("async.bulk.prefetch"):
        return PURE
    if ".mbarrier.arrive" in rest and len(places) == 1:
        return Behaviour((Touch(places[0], RW),))
    modes = [RW if rest.startswith("reduce") else W, R, RW]
    if len(places) > len(modes):
        return Behaviour((Touch(None, RW),))
    return Behaviour(tuple(Touch(place, mode) for place, mode in zip(places, modes, strict=False)))
