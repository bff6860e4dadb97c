"""Statements between copies to the host and the waits for them: ``Looks(program, form, spans, …)``.

In: the concurrent program, copies that deal with an error in one form, and calls with such copies in them. Out: behind
which of them memory may be read or changed before a wait of that form. It goes the way back through the statements
that `sources` goes, with other rules: only small variables may be used, and addresses computed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kesco.ir import program as ir
from kesco.ir.alike import is_alike
from kesco.ir.transfers import COPIES, COPY, FETCH, FETCHED, LEAST_FETCHED, PRINTS, SEND
from kesco.ir.turns import PIN
from kesco.ir.volatiles import is_volatile, type_of
from kesco.ir.within import is_this
from kesco.source import Span
from kesco.verify.sources import Ahead, Reader, way_of, word_of

_WAIT = re.compile(rb"\bkesco_fetched\s*\(\s*\)")
_OF_NUMBERS = re.compile(
    r"(?:const )?std::vector<((?:short|int|long|long long|float|double)|unsigned (?:short|int|long|long long))"
    r"(?:, std::allocator<\1 ?>)?>"
)
_ELEMENTS = ("operator[]", "front", "back")
_OWN_MEMORY = re.compile(r"(?:const )?std::(?:__cxx11::)?(?:vector|basic_string)<.*>")
_TO_PRINT = {"cerr", "cout", "clog", "stderr", "stdout", "endl"}
_MESSAGES = ("const char *", "const char *const")
_THIS = ir.Literal("this")


def squeezed(text: bytes) -> bytes:
    """A statement without space outside of its literals."""
    parts = re.split(rb'("[^"\n]*")', text)
    bare = b"".join(part if n % 2 else b"".join(part.split()) for n, part in enumerate(parts))
    return bare.replace(b"(void)", b"").replace(b"::@", b"@")


def _is_of_kesco(one: ir.Expr) -> bool:
    """Whether it is one of kesco's own streams or events, such as ``kesco->stream[i]``."""
    match one:
        case ir.Subscript(base=ir.Select(arrow=True, base=ir.Name(variable=known)), index=index, array=True):
            names = (n.variable.type.shape for n in ir.walk(index) if isinstance(n, ir.Name))
            plain = not any(isinstance(n, (ir.Call, ir.Dereference, ir.Subscript, ir.Select)) for n in ir.walk(index))
            own = known.type.spelling.endswith("KescoStreams *")
            return own and plain and all(shape is ir.Shape.INTEGER for shape in names)
    return False


def _is_inner(one: ir.Expr) -> bool:
    """Whether it is a container in a container, or a member that is one: no copy of bytes goes there."""
    element: ir.Type | None = None
    if isinstance(one, ir.Call) and one.standard and one.receiver is not None and one.type is not None:
        element = one.type.element if one.type.shape is ir.Shape.REFERENCE else one.type
    elif isinstance(one, ir.Select):
        element = one.type
    return element is not None and bool(_OWN_MEMORY.fullmatch(element.spelling))


def is_of_numbers(address: ir.Expr) -> bool:
    """Whether an address is written as ``x.data()`` or ``&x[i]`` of a vector of numbers, and what lies behind."""
    to, name = address, "data"
    while isinstance(to, ir.Cast) or (isinstance(to, ir.Binary) and to.operator == "+"):
        to = to.operand if isinstance(to, ir.Cast) else to.left
    if isinstance(to, ir.AddressOf):
        to, name = to.target, "operator[]"
    if not isinstance(to, ir.Call) or not to.standard or word_of(to) != name or to.receiver is None:
        return False
    kind = type_of(to.receiver)
    return kind is not None and _OF_NUMBERS.fullmatch(kind.spelling) is not None


def _has_address(program: ir.Program, kind: ir.Type, around: frozenset[str] = frozenset()) -> bool:
    """Whether a pointer, or a vector or text with memory of its own, is a part of what has a type."""
    if kind.shape is ir.Shape.POINTER or _OWN_MEMORY.fullmatch(kind.spelling):
        return True
    record = program.records.get(kind.record) if kind.shape is ir.Shape.RECORD else None
    if record is None or kind.record in around:
        return False
    return any(_has_address(program, field.type, around | {kind.record}) for field in record.fields)


class Looks(Reader):
    """Finds looks and changes between copies of one form and the waits of that form; `members` are no looks.

    Calls that are `later` have such copies in them, and it is known whether they do anything else. `copies` are all
    these copies, each in its statement.
    """

    least = LEAST_FETCHED

    def __init__(
        self, program: ir.Program, form: bytes, spans: set[Span], this: str, *, members: bool,
        later: Mapping[tuple[Span, str], bool], copies: Sequence[tuple[ir.Stmt, ir.Call]] = (),
    ) -> None:  # fmt: skip
        super().__init__(program)
        self.later, self.own_this, self.copies = later, False, copies
        self.calm_of: dict[bool, dict[str, bool]] = {}
        self.this = program.records.get(this)
        self.form, self.spans, self.members = form, spans, members

    def before(self, one: ir.Stmt, ahead: Ahead) -> bool:
        """Whether a look may come before a wait, from the beginning of a statement on."""
        return False if self._is_wait(one) else ahead.on if self._names(one) else super().before(one, ahead)

    def _with_header(self, statements: tuple[ir.Stmt, ...], ahead: Ahead) -> Ahead:
        return super()._with_header(tuple(one for one in statements if not self._names(one)), ahead)

    def _names(self, one: ir.Stmt) -> bool:
        """Whether a statement only gives a place another name."""
        refers = isinstance(one, ir.Declare) and one.variable.type.shape is ir.Shape.REFERENCE
        return refers and isinstance(one, ir.Declare) and one.initial is not None and self._only_where(one.initial)

    def _is_wait(self, one: ir.Stmt) -> bool:
        text = self.program.text[one.span.start : one.span.end]
        if squeezed(_WAIT.sub(b"@", text)).removesuffix(b";") != self.form:
            return False
        waits = [n for n in ir.walk(one) if isinstance(n, ir.Call) and word_of(n) == FETCHED]
        return len(waits) == 1 and all(is_alike(copy, call, one, waits[0]) for copy, call in self.copies)

    def is_one(self, call: ir.Call) -> bool:
        """Whether a call is a copy of this form."""
        return call.span in self.spans

    def waits(self, one: ir.Expr) -> bool:
        """No expression does: the whole statement has to be one."""
        return False

    def calm_value(self, one: ir.Expr) -> bool:
        """Whether an expression neither changes nor reads what may be a destination, nor tells others to."""
        if is_volatile(one):
            return False
        match one:
            case ir.Unknown() | ir.New() | ir.Dereference():
                return False
            case ir.Name():
                return self.small(one.variable.type)
            case ir.AddressOf(target=place) | ir.Decay(array=place):
                return self._only_where(place)
            case ir.Select() if one.type.shape is not ir.Shape.REFERENCE and self._is_known_member(one):
                return True
            case ir.Select() | ir.Subscript():
                return _is_of_kesco(one) or (self.holds(one) and self._parts(one))
            case ir.Assign():
                return self.holds(one.target) and self._parts(one)
            case ir.Call() if word_of(one) == PIN:  # where blocks are, and how large
                return True
            case ir.Call() if (one.span, one.key) in self.later:
                return self.later[one.span, one.key] and self._is_given(one)
            case ir.Call():
                inner = one.receiver is not None and _is_inner(one.receiver) and self.calm_value(one.receiver)
                object_ = is_this(one.receiver) or isinstance(one.receiver, ir.Name) or inner
                return object_ and self.calls(one) and all(map(self.calm_value, one.arguments))
        return self._parts(one)

    def _is_given(self, call: ir.Call) -> bool:
        """Whether a call with such copies in it is given small values, and told where other things are."""
        function, one = self.bodies.get(call.key), call.receiver
        of = one is None or isinstance(one, ir.Name) or self._only_where(one)
        of = of or (isinstance(one, ir.Dereference) and self.calm_value(one.pointer))
        pairs = list(zip(function.parameters, call.arguments, strict=False)) if function is not None else []
        return (
            of
            and len(pairs) == len(call.arguments)
            and all(
                self.calm_value(a) or (p.type.shape is ir.Shape.REFERENCE and self._only_where(a)) for p, a in pairs
            )
        )

    def _is_known_member(self, one: ir.Select) -> bool:
        return self.is_small(one) or (self.members and self._is_member(one))

    def is_small(self, one: ir.Expr | None) -> bool:
        """Whether it is a part of a variable whose class is smaller than what is looked for."""
        while isinstance(one, ir.Select) and one.base is not None and not one.arrow:
            one = one.base
        this = isinstance(one, ir.Select) and (one.base is None or one.base == _THIS)
        if this or is_this(one):
            return self.own_this
        kind = one.variable.type if isinstance(one, ir.Name) else None
        record = self.program.records.get(kind.record) if kind is not None and kind.shape is ir.Shape.RECORD else None
        return record is not None and 0 < record.size < self.least

    def _is_member(self, one: ir.Select) -> bool:
        """Whether it is a member of an object that such numbers cannot be, found by variables and such members."""
        if one.base is None:
            fields = self.this.fields if self.this is not None and not self.this.plain else ()
            return any(_has_address(self.program, field.type) for field in fields)
        of = type_of(one.base)
        of = of.element if one.arrow and of is not None else of
        if of is None or not _has_address(self.program, of):
            return False
        known = self.program.records.get(of.record)
        simple = known is None or known.plain  # any bytes may be taken for an object of such a class
        if one.arrow:
            cast = any(isinstance(n, ir.Cast) for n in ir.walk(one.base))
            return not simple and not cast and self.calm_value(one.base)
        if simple and isinstance(one.base, ir.Name) and one.base.variable.scope is ir.Scope.PARAMETER:
            return False
        return isinstance(one.base, ir.Name) or self._only_where(one.base)

    def _parts(self, one: ir.Expr) -> bool:
        return all(self.calm_value(c) for c in ir.children(one) if isinstance(c, ir.Expr))

    def _only_where(self, place: ir.Expr) -> bool:
        """Whether computing an address reads small variables alone."""
        match place:
            case ir.Literal():
                return True
            case ir.Name():
                return place.variable.type.shape is not ir.Shape.REFERENCE
            case ir.Select(base=ir.Expr() as base):
                return self.calm_value(base) if place.arrow else self._only_where(base)
            case ir.Subscript():
                inner = self._only_where(place.base) if place.array else self.calm_value(place.base)
                return inner and self.calm_value(place.index)
            case ir.Call(receiver=ir.Name()) if place.name.startswith("std::vector::") and word_of(place) in _ELEMENTS:
                return all(map(self.calm_value, place.arguments))
            case ir.Call():
                return word_of(place) in ("kesco_streams", "kesco_streams_if_distinct") and self.calm_value(place)
        return False

    def calls(self, call: ir.Call) -> bool:
        """Whether a call does neither by itself, whatever its arguments do."""
        word = word_of(call)
        if word in (COPY, SEND, FETCH):
            return True
        if word == FETCHED or (call.receiver is not None and word in _ELEMENTS and not _is_inner(call)):
            return False
        if word in COPIES:
            return way_of(call) == 3
        function = self.bodies.get(call.key)
        if function is not None and not call.standard:
            if any(isinstance(n, ir.Call) and word_of(n) in COPIES for n in ir.walk(function.body)):
                return False
            for parameter, argument in zip(function.parameters, call.arguments, strict=False):
                named = any(isinstance(n, ir.Name) for n in ir.walk(argument))
                if parameter.type.spelling in _MESSAGES and named:
                    return False
            return not any(call.references) and self._is_calm_for(function, call)
        return super().calls(call)

    def _is_calm_for(self, function: ir.Function, call: ir.Call) -> bool:
        """Whether a function does neither, in an object of which it is known whether it is a small variable."""
        before = self.this, self.own_this, self.calm
        self.own_this = bool(function.method_of) and self.is_small(call.receiver)
        self.this, self.calm = self.program.records.get(function.method_of), self.calm_of.setdefault(self.own_this, {})
        calm = self._only_calm(function.key)
        self.this, self.own_this, self.calm = before
        return calm

    def printed(self, one: ir.Expr | ir.Stmt) -> bool:
        """Whether printing an expression reads no memory but that of literals and of the driver's words."""
        match one:
            case ir.Name(variable=known):
                number = known.type.shape in (ir.Shape.INTEGER, ir.Shape.OTHER) and self.small(known.type)
                message = known.scope is ir.Scope.PARAMETER and known.type.spelling in _MESSAGES
                return number or message or known.name in _TO_PRINT
            case ir.Literal() | ir.Constant() | ir.FunctionName():
                return True
            case ir.Call(standard=True) if word_of(one) in PRINTS:
                return all(map(self.printed, ir.children(one)))
            case ir.Call(standard=True, name="cudaGetErrorString" | "cudaGetErrorName"):
                return self.calm_value(one)
            case ir.Cast() | ir.Decay() | ir.Binary() | ir.Unary() | ir.Branch():
                return all(map(self.printed, ir.children(one)))
        return False
