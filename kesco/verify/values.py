"""What is given to work that is issued ahead of a copy to the host is what it was: ``value_problems(…)``.

In: both programs, and the regions of one function of each. Out: what speaks against it, in words. A stage of its own
because regions say which memory work touches, not which values it is given.

1. It is asked only where some work of the serial program stands behind a copy from or to the host, and that of the
concurrent one before it. 2. Both texts are walked in their order. The same must be launched and copied with the same
arguments, in which a name means the same variable. 3. Copies to the host must come in one order, and between two of
them the same must be read of what such a copy may write: in launches, calls that copy or set memory, first values of
variables, and what is stored. 4. A copy may write all but plain variables of a function's own whose address is taken
nowhere but where a call of CUDA puts a pointer or handle there; and where a container's elements are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from kesco.ir import program as ir
from kesco.ir.flow import Region, SiteKind
from kesco.ir.transfers import COPIES, FILLS, ON_DEVICE, TO_DEVICE
from kesco.verify.match import is_work, match
from kesco.verify.sources import way_of, word_of

_FROM_SYMBOLS = ("cudaMemcpyFromSymbol", "kesco_copy_from_symbol")
_GIVEN = ("cudaMem", "kesco_copy", "kesco_fetch", "kesco_send", "kesco_memset")
_ELSEWHERE = ("std::vector::data", "std::vector::size", "std::vector::empty")
_Events = list[tuple[str, "Counter[str]"]]


def value_problems(serial: Region, concurrent: Region, before: ir.Program, after: ir.Program) -> tuple[str, ...]:
    """What speaks against the values that work of a function is given."""
    if not _overtaken(serial, concurrent):
        return ()
    one, other = _Walk(before, serial), _Walk(after, concurrent)
    if one.work != other.work:
        return ("its work is not given the same as in the serial program",)
    ours, theirs = one.events(), other.events()
    if [home for home, _ in ours] != [home for home, _ in theirs]:
        return ("its copies to the host come in another order than in the serial program",)
    wrong = next((home for (home, reads), (_, now) in zip(ours, theirs, strict=True) if reads != now), None)
    return () if wrong is None else (f"what the copy to '{wrong}' may write is read on the other side of it",)


def _overtaken(serial: Region, concurrent: Region) -> bool:
    """Whether some work stands before a copy between host and device that stood behind it."""
    pairs = [(s, c) for c, s in enumerate(match(serial, concurrent).to_serial) if s >= 0 and is_work(serial.sites[s])]
    copies = [(s, c) for s, c in pairs if serial.sites[s].kind is SiteKind.COPY and serial.sites[s].held is not None]
    return any(s < t and c > d for s, c in copies for t, d in pairs)


class _Walk:
    """Walks one function, with those that its region has in it."""

    def __init__(self, program: ir.Program, region: Region) -> None:
        spans = {region.span, *(span for _, span in region.members)}
        self.bodies = [f.body for f in program.functions if f.here and f.span in spans]
        self.others = {key for f in program.functions if f.here for key in _shared(f.body)}
        self.numbers: dict[str, int] = {}  # of the variables of one name that a function declares
        for body in self.bodies:
            names: Counter[str] = Counter()
            for node in _in_order(body):
                if isinstance(node, ir.Declare):
                    names[node.variable.name] += 1
                    self.numbers[node.variable.key] = names[node.variable.name]
        self.work = Counter(told for body in self.bodies for node in _in_order(body) for told in self._issued(node))

    def events(self) -> _Events:
        """The copies to the host, each with what is read before it and behind the one before; and what is left."""
        found: _Events = []
        for body in self.bodies:
            reads: Counter[str] = Counter()
            for node in _in_order(body):
                reads.update(self._given(node))
                if isinstance(node, ir.Call) and _is_home(node):
                    found.append((self._told(node.arguments[0]), reads))
                    reads = Counter()
            found.append(("", reads))
        return found

    def _issued(self, node: ir.Expr | ir.Stmt) -> Iterator[str]:
        """A launch or copy, with all that it is given but its stream."""
        if isinstance(node, ir.Launch):
            parts = (*node.configuration[:2], *node.arguments)
            yield f"{node.kernel.name}({', '.join(map(self._told, parts))})"
        elif isinstance(node, ir.Call) and (word_of(node) in COPIES or word_of(node).startswith(_FROM_SYMBOLS)):
            rows = COPIES.get(word_of(node)) == COPIES["cudaMemcpy2D"]
            yield f"copy({', '.join(map(self._told, node.arguments[: 6 if rows else 3]))})"

    def _given(self, node: ir.Expr | ir.Stmt) -> Iterator[str]:
        """What is read where values go into work or into variables."""
        match node:
            case ir.Launch():
                parts = [*node.configuration[:3], *node.arguments]
            case ir.Call() if word_of(node).startswith(_GIVEN):
                parts = [*node.arguments]
            case ir.Declare(initial=ir.Expr() as first) if not node.variable.name.startswith("kesco"):
                parts = [first]
            case ir.Assign():
                parts = [node.value]
            case _:
                parts = []
        return (told for one in parts for told in self._read(one))

    def _read(self, one: ir.Expr | ir.Stmt) -> Iterator[str]:
        """The parts of an expression that a copy may have written."""
        if isinstance(one, ir.Select) and _is_of_kesco(one):
            return
        if isinstance(one, ir.Call) and one.name in _ELSEWHERE:
            return
        if isinstance(one, ir.Name):
            plain = one.variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER) and one.variable.key not in self.others
            if not plain or one.variable.type.shape is ir.Shape.REFERENCE:
                yield self._told(one)
        elif isinstance(one, (ir.Dereference, ir.Subscript, ir.Unknown)) or (isinstance(one, ir.Select) and one.arrow):
            if not (isinstance(one, ir.Subscript) and _is_of_kesco(one.base)):
                yield self._told(one)
        elif isinstance(one, ir.Call) and one.receiver is not None:
            yield self._told(one)
        else:
            for inner in ir.children(one):
                yield from self._read(inner)

    def _told(self, one: ir.Expr | ir.Stmt) -> str:
        """An expression in words that do not depend on where it stands."""
        return _in_words(one, lambda known: f"{known.name}:{self.numbers.get(known.key, 0)}")


def _is_of_kesco(one: ir.Expr | None) -> bool:
    inner = one.base if isinstance(one, ir.Select) else one
    return isinstance(inner, ir.Name) and inner.variable.type.spelling.endswith("KescoStreams *")


def _is_home(call: ir.Call) -> bool:
    word = word_of(call)
    return word.startswith(_FROM_SYMBOLS) or (word in COPIES and way_of(call) not in (TO_DEVICE, ON_DEVICE))


def _in_order(node: ir.Expr | ir.Stmt) -> Iterator[ir.Expr | ir.Stmt]:
    yield node
    for inner in ir.children(node):
        yield from _in_order(inner)


def _shared(node: ir.Expr | ir.Stmt) -> Iterator[str]:
    """The keys of variables that are reached by other ways than their names."""
    match node:
        case ir.AddressOf() | ir.Decay() | ir.Unknown() | ir.New() | ir.Obstacle():
            yield from _keys(node)
        case ir.Declare() if node.variable.type.shape is ir.Shape.REFERENCE and node.initial is not None:
            yield from _keys(node.initial)
        case ir.Call():
            for argument, changes in zip(node.arguments, node.references, strict=False):
                yield from _keys(argument) if changes else ()
            if node.receiver is not None and node.name not in _ELSEWHERE:
                yield from _keys(node.receiver)
    skipped = node.arguments[:1] if isinstance(node, ir.Call) and word_of(node) in FILLS else ()
    for inner in ir.children(node):
        if not any(inner is one for one in skipped):
            yield from _shared(inner)


def _keys(node: ir.Expr | ir.Stmt) -> Iterator[str]:
    return (n.variable.key for n in ir.walk(node) if isinstance(n, ir.Name))


def issued_in(node: ir.Expr | ir.Stmt) -> tuple[str, ...]:
    """What the launches, copies and memsets in a part of a text are given, in its order, by the names that stand there.

    Of an expression that is none of these, the expression.
    """
    found: list[str] = []
    for one in _in_order(node):
        if isinstance(one, ir.Launch):
            shared = (s for s in one.configuration[2:3] if _by_name(s) not in ("0", "'default'"))
            parts = (*one.configuration[:2], *shared, *one.arguments)
        elif isinstance(one, ir.Call) and (word_of(one) in COPIES or word_of(one).startswith("cudaMemset")):
            parts = one.arguments[:3]
        else:
            continue
        found.append(f"{type(one).__name__}({', '.join(map(_by_name, parts))})")
    return tuple(found) or ((_by_name(node),) if isinstance(node, ir.Expr) else ())


def _by_name(one: ir.Expr | ir.Stmt) -> str:
    return _in_words(one, lambda known: known.name, _of_this)


def _of_this(one: ir.Select) -> str:
    """A member of ``this`` by its name alone, which a variable of a turn may have, too."""
    return known.name if (known := ir.named(one)) is not None else ""


def _in_words(
    one: ir.Expr | ir.Stmt, name: Callable[[ir.Variable], str], member: Callable[[ir.Select], str] = lambda _: ""
) -> str:
    inner = ", ".join(_in_words(part, name, member) for part in ir.children(one))
    match one:
        case ir.Select() if word := member(one):
            return word
        case ir.Name(variable=known):
            return name(known)
        case ir.Constant(value=value):
            return str(value)
        case ir.Literal():
            return f"'{one.text}'"
        case ir.Select():
            return f"{inner}.{one.member}"
        case ir.Call():
            return f"{one.name}({inner})"
        case ir.Binary() | ir.Unary():
            return f"{one.operator}({inner})"
        case ir.Cast() | ir.Decay():
            return inner
        case ir.Dereference():
            return f"*{inner}"
    return f"{type(one).__name__}({inner})"
