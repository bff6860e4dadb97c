"""Anchors: the statement of the file before and behind which text may be inserted, for all that stands in it.

In: the cursor of a statement. Out: the same statement lowered, each operation in it with its anchor. Apart from the
statements themselves because this is about text, not about meaning.

1. Each statement of a block is the anchor of what it contains; statements that a macro expands to share the outermost
invocation. 2. Conditions, loop headers and returns clear it or mark what is inside as a part of them. 3. What is in a
macro that may leave its function cannot be edited, and neither can text that a macro expands twice.
"""

from __future__ import annotations

from dataclasses import replace

from clang.cindex import Cursor, CursorKind

from kesco.frontend.clang import children, kind_of
from kesco.frontend.invocations import Invocations
from kesco.frontend.operations import IN_HEAD, Anchor, closing_parenthesis, skip_space
from kesco.ir import program as ir
from kesco.ir.failures import leaves_where_it_failed
from kesco.ir.replay import ENDS
from kesco.ir.walking import breaks

K = CursorKind
_KEYWORDS = {
    K.COMPOUND_STMT: b"{", K.DO_STMT: b"do", K.IF_STMT: b"if", K.FOR_STMT: b"for", K.CXX_FOR_RANGE_STMT: b"for",
    K.WHILE_STMT: b"while", K.SWITCH_STMT: b"switch", K.RETURN_STMT: b"return", K.CASE_STMT: b"case",
    K.DEFAULT_STMT: b"default", K.BREAK_STMT: b"break", K.CONTINUE_STMT: b"continue", K.CXX_THROW_EXPR: b"throw",
}  # fmt: skip


class Anchors(Invocations):
    """Sets and clears anchors; statements are left to the subclass."""

    def _from_macro(self, cursor: Cursor, start: int, end: int) -> bool:
        """Whether a statement's first token comes out of a macro: the text there is not the statement's own."""
        if end <= start:
            return True
        word, _ = self._first_token(start)
        keyword = _KEYWORDS.get(kind_of(cursor))
        if keyword is not None:
            return not self.text.startswith(keyword, start)
        return word in self.macros

    def _first_token(self, offset: int) -> tuple[str, int]:
        text = self.text
        end = offset
        while end < len(text) and (text[end : end + 1].isalnum() or text[end : end + 1] == b"_"):
            end += 1
        return text[offset:end].decode("utf-8", "replace"), end

    def statement(self, cursor: Cursor, *, lone: bool = False) -> ir.Stmt:
        """The statement at `cursor`; `lone` for the unbraced body of an if, else or loop."""
        outer = self.anchor
        if outer is not None and self._inside_macro:
            return self._statement(cursor)
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        inside = self._from_macro(cursor, start, end)
        if inside and end <= start:
            end = self._end_of_invocation(start)
        elif self._first_token(end)[0] in self.macros and self.text[end - 1 : end] not in (b"}", b";"):
            end = self._end_of_invocation(end)  # clang says that a macro's argument ends where the macro begins
        self.anchor = Anchor(start, end, lone)
        self._inside_macro = inside
        first, self._leaves = len(self.operations), False
        try:
            lowered = self._statement(cursor)
        finally:
            self.anchor, self._inside_macro = outer, False
        out = "the function" if self._leaves and not leaves_where_it_failed(lowered) else ""
        out = "the loop" if breaks(lowered) else out
        if inside and out:
            for number in range(first, len(self.operations)):  # what goes behind it would not be come to
                self._stick(number, f"the macro around it may leave {out}")
        return lowered

    _inside_macro = False
    _leaves = False  # whether the statement being lowered contains a way out of the function
    first_operation = 0  # the first one of this parse; earlier ones belong to an earlier text
    top = 0  # offset of the outermost declaration around what is being lowered

    def _end_of_invocation(self, start: int) -> int:
        _, end = self._first_token(start)
        close = closing_parenthesis(self.text, end)
        return end if close is None else close + 1

    def share(self) -> None:
        """An operation whose text a macro expands twice cannot be edited for one of its expansions only."""
        by_text: dict[tuple[int, ...], list[int]] = {}
        for one in self.operations[self.first_operation :]:
            place = one.call or one.stream_text or (one.handle[1:] if one.handle is not None else None)
            if not one.stuck and place is not None:
                by_text.setdefault(place, []).append(one.number)
        for numbers in by_text.values():
            for number in numbers if len(numbers) > 1 else ():
                self._stick(number, "its text is expanded more than once by a macro")

    def _stick(self, number: int, why: str) -> None:
        old = self.operations[number]
        self.operations[number] = ir.Operation(
            old.number, old.span, old.statement, old.lone, old.within, None, (), None, old.stuck or why
        )

    def unanchored(self, cursor: Cursor) -> ir.Expr:
        """An expression in a loop's header: nothing can be inserted before or behind it."""
        keep, self.anchor = self.anchor, None
        try:
            return self.lower(cursor)
        finally:
            self.anchor = keep

    def within(self, cursor: Cursor, *, first: bool = True) -> ir.Expr:
        """An expression in the header of a statement: text can be inserted before the statement, not behind it.

        It may be what the statement evaluates `first`.
        """
        read = self.value if first else self.lower
        if self.anchor is None:
            return read(cursor)
        keep, self.anchor.stuck = (
            self.anchor.stuck,
            self.anchor.stuck or IN_HEAD,
        )
        try:
            return read(cursor)
        finally:
            self.anchor.stuck = keep

    def condition(self, cursor: Cursor, *, first: bool, leaves: bool = False) -> ir.Expr:
        """A condition; inside a macro invocation (``if ((call) != ok)``) the invocation still runs it once.

        Where what it guards `leaves`, what stands behind the statement is come to by all that stay: text can be put
        there, too. A library's handle would not be given back on the other way.
        """
        if not (self._inside_macro or leaves):
            return self.within(cursor, first=first)
        begin = len(self.operations)
        condition = self.value(cursor) if first else self.lower(cursor)
        launches = {n.operation for n in ir.walk(condition) if isinstance(n, ir.Launch)}
        for number in range(begin, begin if self._inside_macro else len(self.operations)):
            one = self.operations[number]
            if one.handle is not None or number in launches:
                self.operations[number] = replace(one, handle=None, stream_text=None, stuck=IN_HEAD)
        return condition

    heads = True  # what is in the condition of a branch that leaves may move

    def ends_by_leaving(self, cursor: Cursor, head: int) -> bool:
        """Whether the last statement of what an ``if`` guards, whose head ends there, leaves the function or process.

        All of it is text of its own.
        """
        end = skip_space(self.text, head)
        if not self.heads or self.text[end : end + 1] != b")":
            return False
        while kind_of(cursor) in (K.COMPOUND_STMT, K.UNEXPOSED_EXPR):
            inner = children(cursor)
            if not inner or self._from_macro(cursor, cursor.extent.start.offset, cursor.extent.end.offset):
                return False
            cursor = inner[-1]
        ends = kind_of(cursor) is K.CALL_EXPR and cursor.spelling in ENDS
        if self._from_macro(cursor, cursor.extent.start.offset, cursor.extent.end.offset):
            return False
        return ends or kind_of(cursor) in (K.RETURN_STMT, K.CXX_THROW_EXPR)

    def value(self, cursor: Cursor) -> ir.Expr:
        """Left to the subclass."""
        raise NotImplementedError

    def _statement(self, cursor: Cursor) -> ir.Stmt:
        """Left to the subclass."""
        raise NotImplementedError
