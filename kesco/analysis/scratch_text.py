"""The text of a function that may use scratch: by which pointers, in which order, and what decides what it writes.

In: a function. Out: `Text`, which is asked about its launches, memsets and copies by their operations. Apart from the
search for scratch because all of this is about the language.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kesco.analysis.harmless import Harmless
from kesco.analysis.region import Draft
from kesco.analysis.scratch_words import LESSER, Word, as_given, is_dim3, is_ours, object_of, pointer_in, same, word_of
from kesco.ir import program as ir
from kesco.ir.access import AccessMode, through_parameter
from kesco.ir.flow import SiteKind
from kesco.ir.kernels import Writes, word_in, writes_no_more
from kesco.ir.scratch import OWN, OWNED, Scratch
from kesco.ir.turns import Steering

WORK = (SiteKind.KERNEL, SiteKind.COPY, SiteKind.MEMSET)
_COPIES = ("cudaMemcpy", "cudaMemcpyAsync", "kesco_copy_here")
_FILLS = ("cudaMemset", "cudaMemsetAsync")


@dataclass
class Text:
    """The text of one function; with `streams`, one that says of which pointers each stream has its own memory."""

    program: ir.Program
    function: ir.Function
    harmless: Harmless
    streams: bool

    @cached_property
    def _statements(self) -> tuple[ir.Stmt, ...]:
        body = self.function.body
        return tuple(ir.flat(body)) if isinstance(body, ir.Block) else ()

    @cached_property
    def _nodes(self) -> dict[int, tuple[int, ir.Launch | ir.Call]]:
        """The launches, copies and memsets, by operation, each with the number of its statement."""
        found: dict[int, tuple[int, ir.Launch | ir.Call]] = {}
        for number, statement in enumerate(self._statements):
            for node in ir.walk(statement):
                call = isinstance(node, ir.Call) and word_of(node) in (*_COPIES, *_FILLS)
                if isinstance(node, ir.Launch) or (isinstance(node, ir.Call) and call):
                    found[node.operation] = number, node
        return found

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The variables that are assigned to, or may be by another name, and the members by theirs."""
        found = {*ir.lent(self.function.body)}
        for node in ir.walk(self.function.body):
            changed: list[ir.Expr] = []
            if isinstance(node, ir.Assign):
                changed = [node.target]
                found.update(ir.names(node.target))
            elif isinstance(node, ir.AddressOf):
                changed = [node.target]
            elif isinstance(node, ir.Unknown):
                changed = [*node.parts]
            elif isinstance(node, ir.Declare) and node.variable.type.shape is ir.Shape.REFERENCE:
                changed = [node.initial] if node.initial is not None else []
            elif isinstance(node, ir.Call):
                pairs = zip(node.arguments, node.references, strict=False)
                changed = [one for one, changes in pairs if changes]
                if node.receiver is not None and self.harmless.returned(node) is None:
                    changed.append(node.receiver)
            found.update(f".{n.member}" for one in changed for n in ir.walk(one) if isinstance(n, ir.Select))
        return frozenset(found)

    @cached_property
    def _is_quiet(self) -> bool:
        """Whether nothing in it changes a member or a variable of the file, but as `_changed` has it."""
        return self.harmless.keeps_all(self.function.body, members=True)

    # ---- pointers

    def argument(self, draft: Draft, why: str, mode: AccessMode) -> int | None:
        """Which argument of an operation an access goes through, where that is a pointer as it must be."""
        known = self._nodes.get(draft.operation)
        if known is None or draft.kind not in WORK:
            return None
        node = known[1]
        index: int | None
        if isinstance(node, ir.Launch):
            index = next((n for n in range(len(node.arguments)) if why == through_parameter(n)), None)
        elif mode is AccessMode.READ_WRITE or len(node.arguments) < 3:
            return None
        else:
            index = 0 if mode is AccessMode.WRITE else 1
        pointer = self._pointer(node.arguments[index]) if index is not None else None
        good = pointer is not None and self._is_kept(pointer) and self._is_within(pointer, draft.operation)
        return index if good else None

    def _is_within(self, pointer: ir.Expr, operation: int) -> bool:
        """Whether a pointer stands in the text of an operation's statement, where a call may stand around it."""
        statement, node = self.program.operations[operation].statement, self._nodes[operation][1]
        span = pointer.span if isinstance(pointer, (ir.Name, ir.Select, ir.Call)) else None
        if statement is None or span is None or not self._is_plain(pointer):
            return False
        arrows = isinstance(node, ir.Call) or b"<<<" in self.program.text[statement.start : span.start]
        return arrows and statement.start <= span.start and span.end <= statement.end

    def _pointer(self, one: ir.Expr) -> ir.Expr | None:
        """The pointer in an argument, to which integers may be added; as the serial program says it."""
        found = pointer_in(one)
        return ir.bare(found.arguments[0]) if isinstance(found, ir.Call) and is_ours(found) else found

    def _is_kept(self, one: ir.Expr) -> bool:
        """Whether a pointer has one value while the function runs."""
        match one:
            case ir.Name(variable=variable):
                local = variable.scope in (ir.Scope.LOCAL, ir.Scope.PARAMETER)
                kept = variable.key not in self._changed and not variable.type.volatile
                return kept and (local or self._is_quiet)
            case ir.Select(base=base, member=member):
                outer = base is None or self._is_base(base)
                return outer and f".{member}" not in self._changed and self._is_quiet and not one.type.volatile
            case ir.Call(receiver=receiver, arguments=()):
                inner, base = self.harmless.returned(one), object_of(receiver)
                given = ir.bare(inner) if inner is not None else None
                return (base is None or self._is_base(base)) and isinstance(given, ir.Select) and self._is_kept(given)
        return False

    def _is_base(self, one: ir.Expr) -> bool:
        inner = ir.bare(one)
        if isinstance(inner, ir.Name):
            return inner.variable.key not in self._changed
        return isinstance(inner, ir.Select) and self._is_kept(inner)

    def _is_plain(self, one: ir.Expr) -> bool:
        """Whether it stands in the text as such, and not in a macro."""
        return self._text(one) != ""

    def _text(self, one: ir.Expr) -> str:
        """An expression as it stands in the text, where it does."""
        span = one.span if isinstance(one, (ir.Name, ir.Select, ir.Call)) else None
        if span is None or span.path != self.program.path:
            return ""
        text = self.program.text[span.start : span.end].decode("utf-8", "replace")
        match one:
            case ir.Name(variable=variable):
                return text if text == variable.name else ""
            case ir.Select(base=base, member=member):
                if base is None:
                    return text if text in (member, f"this->{member}") else ""
                inner = self._text(ir.bare(base))
                return text if inner and text in (f"{inner}.{member}", f"{inner}->{member}") else ""
            case ir.Call(receiver=receiver):
                word, base = word_of(one), object_of(receiver)
                if base is None:
                    return text if text in (f"{word}()", f"this->{word}()") else ""
                inner = self._text(base)
                return text if inner and text in (f"{inner}.{word}()", f"{inner}->{word}()") else ""
        return ""

    def word(self, operation: int, argument: int) -> Word:
        """The pointer in an argument, so that two that are equal are the same."""
        pointer = self._pointer(self._nodes[operation][1].arguments[argument])
        assert pointer is not None
        return same(pointer)

    # ---- order

    def index(self, operation: int) -> int:
        """The number of the statement that an operation is in."""
        return self._nodes[operation][0]

    def is_always(self, operation: int) -> bool:
        """Whether whoever comes to what stands behind an operation's statement has executed it."""
        number, node = self._nodes[operation]
        return ir.always(self._statements[number], node) and not any(
            isinstance(n, ir.Loop) for n in ir.walk(self._statements[number])
        )

    # ---- which bytes

    def is_steered(self, operation: int, argument: int, steering: Steering) -> bool:
        """Whether what is given to an operation decides which bytes it writes through an argument."""
        node = self._nodes[operation][1]
        if isinstance(node, ir.Call):
            return self._values(operation, argument, steering) is not None
        if len(node.kernel.candidates) != 1 or steering.get(node.kernel.candidates[0], {}).get(argument) is None:
            return False
        self._known[operation, argument] = steering[node.kernel.candidates[0]][argument]
        return self._values(operation, argument, steering) is not None

    @cached_property
    def _known(self) -> dict[tuple[int, int], frozenset[int]]:
        """The arguments that decide, of those operations that were asked about."""
        return {}

    def keeps_no_address(self, operation: int, steering: Steering) -> bool:
        """Whether what an operation runs keeps no pointer that it is given."""
        node = self._nodes[operation][1]
        return isinstance(node, ir.Call) or all(one in steering for one in node.kernel.candidates)

    def writes_no_more(self, first: tuple[int, int], other: tuple[int, int], writes: Writes) -> bool:
        """Whether a launch writes through an argument nothing but what the first one has written."""
        (_, one), (_, two) = self._nodes[first[0]], self._nodes[other[0]]
        if not isinstance(one, ir.Launch) or not isinstance(two, ir.Launch):
            return False
        return writes_no_more(writes, (one, first[1]), (two, other[1]), self._kept)

    def _kept(self, one: ir.Expr) -> str:
        """A word for a variable or pointer that has one value while the function runs."""
        inner = ir.bare(one.arguments[0]) if isinstance(one, ir.Call) and is_ours(one) else one
        if isinstance(inner, ir.Call) and inner.receiver is None and inner.arguments:
            words = [word_in(part, self._kept) for part in inner.arguments]
            return f"{inner.key}({','.join(words)})" if self.harmless.is_number(inner) and all(words) else ""
        return "/".join(same(inner)) if self._is_kept(inner) else ""

    def _values(self, operation: int, argument: int, steering: Steering | None = None) -> list[ir.Expr] | None:
        """The variables that decide which bytes an operation writes; None where anything else does."""
        node = self._nodes[operation][1]
        if isinstance(node, ir.Call):
            deciding = [node.arguments[argument], node.arguments[2]]
        else:
            known = sorted({argument, *self._known.get((operation, argument), ())})
            if known[-1] >= len(node.arguments):
                return None  # a default argument
            deciding = [node.arguments[n] for n in known]
            deciding += node.configuration[:3]
        pointer = pointer_in(node.arguments[argument])
        found: list[ir.Expr] = []
        for one in deciding:
            inner = self._in(one, pointer)
            if inner is None:
                return None
            found += inner
        unique: dict[Word, ir.Expr] = {}
        for one in found:
            unique.setdefault(same(one), one)
        return list(unique.values())

    def _in(self, one: ir.Expr, pointer: ir.Expr | None) -> list[ir.Expr] | None:
        """The variables in an expression of integers; None where it is not one."""
        if one is pointer:
            return []
        parts: list[ir.Expr | ir.Stmt]
        match one:
            case ir.DEFAULT | ir.VARYING | ir.OF_INSTANCE:
                return None
            case ir.Constant() | ir.Literal():
                return []
            case ir.Name(variable=variable):
                if variable.constant is not None:
                    return []
                whole = variable.type.shape is ir.Shape.INTEGER and "__int128" not in variable.type.spelling
                good = (whole or is_dim3(one)) and not variable.type.volatile and self._is_plain(one)
                return [one] if good else None
            case ir.Select(type=kind):
                whole = kind.shape is ir.Shape.INTEGER and not kind.volatile and "__int128" not in kind.spelling
                return [one] if whole and _is_chain(one) and self._is_plain(one) else None
            case ir.Cast() | ir.Binary() | ir.Unary() | ir.Branch():
                parts = ir.children(one)
            case ir.Call(constructs=True) if word_of(one) == "dim3":
                parts = [part for part in one.arguments if part != ir.DEFAULT]
            case ir.Call(standard=True) if one.name in LESSER:
                parts = [*one.arguments]
            case ir.Call(receiver=None):
                if not self.harmless.is_number(one):
                    return None
                parts = [*one.arguments]
            case _:
                return None
        found: list[ir.Expr] = []
        for part in parts:
            more = self._in(part, pointer) if isinstance(part, ir.Expr) else None
            if more is None:
                return None
            found += more
        return found

    # ---- the text

    def scratch(self, operation: int, argument: int, first: bool, buffers: frozenset[str]) -> Scratch:
        """What the text must say of a pointer."""
        node = self._nodes[operation][1]
        leaf = self._pointer(node.arguments[argument])
        assert isinstance(leaf, (ir.Name, ir.Select, ir.Call)) and leaf.span is not None
        values = self._values(operation, argument) if first else None
        texts = tuple(map(self._text, values)) if values is not None else None
        return Scratch(operation, leaf.span.start, leaf.span.end, texts, buffers)

    def is_told(self, operation: int, argument: int, *, first: bool) -> bool:
        """Whether a text that sets streams says of a pointer that each has its own memory, by what must decide."""
        if not self.streams:
            return True
        leaf = pointer_in(self._nodes[operation][1].arguments[argument])
        if not isinstance(leaf, ir.Call) or word_of(leaf) != (OWN if first else OWNED):
            return False
        values = self._values(operation, argument) if first else []
        wanted = [same(one) for one in values or ()]
        return values is not None and [same(as_given(one)) for one in leaf.arguments[1:]] == wanted


def _is_chain(one: ir.Expr | None) -> bool:
    """Whether it is a member of a variable, or of ``this``, by names alone."""
    inner = ir.bare(one) if one is not None else None
    if isinstance(inner, ir.Dereference):
        inner = ir.bare(inner.pointer)
    return (
        inner is None
        or inner == ir.Literal("this")
        or (isinstance(inner, ir.Name) or (isinstance(inner, ir.Select) and _is_chain(inner.base)))
    )
