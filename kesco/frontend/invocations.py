"""Calls and launches: libclang cursors → `ir.tree.Call`, `Launch`, and the text that could be edited.

In: the cursor of a call expression. Out: what is called with what, and an `Operation` that says where its stream is
stated in the text. Apart from the other expressions because these are the nodes that become sites and edits.
"""

from __future__ import annotations

import re

from clang.cindex import Cursor, CursorKind, TypeKind, conf
from clang.cindex import Type as ClangType

from kesco.frontend import clang
from kesco.frontend.api_table import cuda_call
from kesco.frontend.clang import kind_of
from kesco.frontend.declarations import CLASSES, qualified_name
from kesco.frontend.expressions import Expressions, is_kernel
from kesco.frontend.launch_macros import launch_macro
from kesco.frontend.library_table import setter_of
from kesco.frontend.operations import (
    IN_HEAD,
    call_text,
    closing_parenthesis,
    file_range,
    launch_stream_text,
    with_semicolon,
)  # fmt: skip
from kesco.frontend.settled import with_defaults
from kesco.ir import program as ir
from kesco.ir.pieces import pieces
from kesco.source import Span

K = CursorKind
_STUB = "__device_stub__"
_NAMED = re.compile(rb"(?:::)?[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*|\[\w+\])*")  # to say it again does nothing
_CALLED = K.FUNCTION_DECL, K.CXX_METHOD
_FUNCTIONS = (*_CALLED, K.CONSTRUCTOR, K.DESTRUCTOR, K.CONVERSION_FUNCTION, K.FUNCTION_TEMPLATE)
_KERNELS = (K.FUNCTION_DECL, K.FUNCTION_TEMPLATE, K.OVERLOADED_DECL_REF)
_RETURN_TWICE = {"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp", "getcontext", "vfork"}
_ONLY_ASKS = {"__builtin_constant_p", "__builtin_object_size", "__builtin_dynamic_object_size"}  # evaluates nothing
_RESUMES = "std::__n4861::coroutine_handle::", "std::coroutine_handle::"  # whatever coroutine it stands for
_ONLY_KEEPS = ("std::vector::", "std::array::", "std::initializer_list::")  # what may be functions, and calls none
_ALIKE = "cuda", "kesco_"  # how names begin whose overloads do the same
_POINTS = re.compile(r"std::(?:unique_ptr|shared_ptr|__shared_ptr\w*)::(?:get|operator->)")
_HOLDS = re.compile(r"std::(array|vector)::(?:operator\[\]|at|front|back|data|size|empty|capacity|c?begin|c?end)")


def kernel_symbol(cursor: Cursor) -> str:
    """The device's name of a kernel: the mangled name of its host stub without the stub's prefix."""
    mangled, name = str(cursor.mangled_name), cursor.spelling.partition("<")[0]
    return mangled.replace(f"{len(_STUB) + len(name)}{_STUB}{name}", f"{len(name)}{name}", 1)


class Invocations(Expressions):
    """Lowers calls and launches; other expressions come from the base class."""

    macros: frozenset[str] = frozenset()  # names that are defined as macros in the file and in the user's headers

    def _call(self, cursor: Cursor) -> ir.Expr:
        inner = self.children(cursor)
        if len(inner) >= 2 and kind_of(inner[1]) is K.CALL_EXPR and inner[1].spelling == "__cudaPushCallConfiguration":
            return self._launch(cursor, inner)
        target, arguments = cursor.referenced, [c for c in cursor.get_arguments() if c is not None]
        named = self._of_template(inner) if target is None else None
        if named is not None and named.spelling.startswith(_ALIKE):  # all of its overloads do the same
            target, arguments = named, inner[1:]
        if target is None or kind_of(target) not in _FUNCTIONS:
            if self._copies_a_value(cursor, inner):  # before C++17, where nothing says which constructor
                return self.lower(inner[0])
            parts, called = [self.lower(c) for c in inner], named.spelling if named is not None else ""
            return self._call_of(cursor, None, "", None, parts, arguments or inner[1:], (True,) * len(parts), called)
        if target.spelling in _RETURN_TWICE and self.types.is_standard(target):
            self.hidden = self.hidden or f"{target.spelling} (line {self.span(cursor).line}), which may return again"
        key = target.canonical.get_usr()
        parent = target.semantic_parent
        closure = parent is not None and (not parent.spelling or "(lambda" in parent.type.spelling)
        if key not in self.elsewhere and not self.types.is_standard(target) and not closure:
            self.elsewhere[key] = target
        if target.spelling in _ONLY_ASKS:
            return ir.Unknown(tuple(map(self.lower, arguments)), "?", self.span(cursor))
        receiver: ir.Expr | None = None
        if kind_of(target) in (K.CXX_METHOD, K.CONVERSION_FUNCTION, K.DESTRUCTOR):
            receiver, arguments = self._receiver(inner, arguments, target)
        parts = [self.lower(a) for a in arguments]
        parts = parts if self.types.is_standard(target) else with_defaults(target, parts, self.lower)
        unseen = not self.types.is_standard(target) and target.get_definition() is None
        changed = [*(_changeable(p.type, unseen) for p in target.get_arguments()), *([False] * len(parts))]
        return self._call_of(cursor, target, key, receiver, parts, arguments, tuple(changed[: len(parts)]))

    def _of_template(self, inner: list[Cursor]) -> Cursor | None:
        """A function of a system header, or ours, that a template names, whichever overload an instance calls."""
        at = inner[0] if inner else None
        while at is not None and kind_of(at) in (K.UNEXPOSED_EXPR, K.PAREN_EXPR) and self.children(at):
            at = self.children(at)[0]
        named = at.referenced if at is not None else None
        lib, found = conf.lib, [named] if named is not None else []
        if named is not None and kind_of(named) is K.OVERLOADED_DECL_REF:
            found = [lib.clang_getOverloadedDecl(named, i) for i in range(lib.clang_getNumOverloadedDecls(named))]
        known = (self.types.is_standard(one) or one.spelling.startswith("kesco_") for one in found)
        return found[0] if found and all(known) else None

    def _copies_fields(self, target: Cursor) -> bool:
        """Whether an assignment that the compiler wrote does nothing but copy fields."""
        owner = self._owner(target) if target.spelling == "operator=" else None
        return owner is not None and _is_implicit(target) and self._is_of_fields(owner)

    def _copies_a_value(self, cursor: Cursor, inner: list[Cursor]) -> bool:
        """Whether a call makes an object of nothing but fields of another one of its class: ``dim3(dim3(1))``."""
        if len(inner) != 1 or inner[0].type.get_canonical().spelling != cursor.type.get_canonical().spelling:
            return False
        return self._is_of_fields(self.types.lower(cursor.type))

    def _is_of_fields(self, of: ir.Type) -> bool:
        """Whether a class has fields, and copying one does nothing else."""
        record = self.types.records.get(of.record)
        if record is None:
            return False
        scalars = all(f.type.shape in (ir.Shape.INTEGER, ir.Shape.POINTER, ir.Shape.OTHER) for f in record.fields)
        return record.plain or (record.standard and scalars and not record.bases)  # such as dim3, with its constructors

    def _owner(self, member: Cursor) -> ir.Type | None:
        """The class that a function is a member of."""
        owner = member.semantic_parent
        return self.types.lower(owner.type) if owner is not None and kind_of(owner) in CLASSES else None

    def _receiver(
        self, inner: list[Cursor], arguments: list[Cursor], target: Cursor
    ) -> tuple[ir.Expr | None, list[Cursor]]:
        """The object of a member call, and the arguments without it."""
        if not inner:
            return None, arguments
        first = inner[0]
        named = first.referenced if kind_of(first) is K.MEMBER_REF_EXPR else None
        if named is not None and kind_of(named) not in (K.FIELD_DECL, K.VAR_DECL):  # not ``s.x`` in ``s.x[i]``
            bases = self.children(first)
            if not bases:
                return ir.Dereference(ir.Literal("this"), self.span(first)), arguments
            base = self.lower(bases[0])
            pointer = bases[0].type.get_canonical().kind is TypeKind.POINTER
            return (ir.Dereference(base, self.span(first)) if pointer else base), arguments
        if target.spelling.startswith("operator") and arguments:  # an overloaded operator: the object comes first
            return self.lower(arguments[0]), arguments[1:]
        return None, arguments

    def _call_of(
        self,
        cursor: Cursor,
        target: Cursor | None,
        key: str,
        receiver: ir.Expr | None,
        parts: list[ir.Expr],
        arguments: list[Cursor],
        references: tuple[bool, ...],
        called: str = "",
    ) -> ir.Expr:
        name = qualified_name(target) if target is not None else ""
        standard = target is not None and self.types.is_standard(target)
        mine = not standard or name == "std::function::operator()"  # which runs what it holds
        own = target if mine and target is not None and kind_of(target) in _CALLED else None
        moves = own is not None or (target is None and not called)
        number = self._operation(cursor, None, name if standard else called, arguments, own, moves=moves)
        constructs = target is not None and kind_of(target) is K.CONSTRUCTOR
        result = self.types.lower(cursor.type)
        acts = standard and not self._only_tells_where(cursor, name, arguments)
        return ir.Call(
            name, key, tuple(parts), self.span(cursor), number, receiver, constructs, standard, result, references,
            target is None or (not constructs and target.result_type.get_canonical().kind.name.endswith("REFERENCE")),
            constructs and target is not None and _is_implicit(target),
            acts and self._destroys_user_objects(cursor, arguments),
            acts and self._runs_user_code(cursor, name, arguments),
            target is not None and len(parts) == 1 and self._copies_fields(target),
        )  # fmt: skip

    def _only_tells_where(self, cursor: Cursor, name: str, arguments: list[Cursor]) -> bool:
        """Whether a call of the library says where an object is, with pointers that are no objects of a class."""
        if _POINTS.fullmatch(name):
            return bool(cursor.type.get_canonical().kind is TypeKind.POINTER)
        found = _HOLDS.fullmatch(name)
        if found is None:
            return False
        given = (*(c for one in self.children(cursor)[:1] for c in (one, *self.children(one)[:1])), *arguments)
        allocators = (one.type.get_canonical().get_template_argument_type(1).spelling for one in given)
        return found[1] == "array" or any(one.startswith("std::allocator<") for one in allocators)

    def _destroys_user_objects(self, cursor: Cursor, arguments: list[Cursor]) -> bool:
        """Whether a library call may destroy objects of the user's classes that it holds."""
        for one in (*self.children(cursor)[:1], *arguments):
            inner = self.children(one)[:1] if kind_of(one) is K.MEMBER_REF_EXPR else [one]
            for part in inner:
                found: ir.Type | None = self.types.lower(part.type)
                while found is not None:
                    record = self.types.records.get(found.record)
                    if record is not None and record.standard and record.destructor:
                        return True
                    found = found.element
        return False

    def _runs_user_code(self, cursor: Cursor, name: str, arguments: list[Cursor]) -> bool:
        """Whether a library call works on objects of the user's classes that are more than data, or on functions."""
        first = self.children(cursor)[:1]
        receivers = [c for one in first for c in self.children(one)[:1] if kind_of(one) is K.MEMBER_REF_EXPR]
        if name.startswith(_RESUMES):
            return True
        given = [cursor, *receivers, *arguments]
        calls = name.startswith("std::") and not name.startswith(_ONLY_KEEPS)
        called = [*given, *cursor.get_arguments()] if calls else []  # with the object of an operator, such as ``f()``
        return any(self.types.has_code(one.type) for one in given) or any(self.types.is_called(c.type) for c in called)

    def _launch(self, cursor: Cursor, inner: list[Cursor]) -> ir.Expr:
        self.launched = True
        written = [c for c in self.children(inner[1])[1:] if c.extent.start.offset or c.extent.end.offset]
        configuration = tuple(self.lower(c) for c in written)
        arguments = tuple(self.lower(c) for c in inner[2:])
        kernel = self._kernel_of(inner[0])
        number = self._operation(cursor, (inner[1], written))
        return ir.Launch(kernel, configuration, arguments, self.span(cursor), number)

    def _kernel_of(self, callee: Cursor) -> ir.Kernel:
        at = callee
        while kind_of(at) in (K.UNEXPOSED_EXPR, K.PAREN_EXPR) and self.children(at):
            at = self.children(at)[0]
        target = at.referenced
        if target is not None and kind_of(target) is K.FUNCTION_DECL and is_kernel(target):
            return self._kernel(target)
        name = (target.spelling if target is not None else "") or at.spelling
        name = name or next((c.spelling for c in at.get_children() if kind_of(c) is K.OVERLOADED_DECL_REF), "")
        # a variable's name, or a parameter's of a template, says nothing of the kernel's
        value = kind_of(at) is K.CALL_EXPR or (target is not None and kind_of(target) not in _KERNELS)
        return ir.Kernel(name or "kernel", () if value or not name else (f"?{name}",))

    def _kernel(self, target: Cursor) -> ir.Kernel:
        outputs = priority = None
        if not self._dependent(target) and kind_of(target) is K.FUNCTION_DECL:
            for one in target.get_arguments():
                if one.spelling in ("outputs", "priority"):
                    value = next((clang.constant(c) for c in self.children(one)), None)
                    outputs, priority = (value, priority) if one.spelling == "outputs" else (outputs, value)
        parameters = tuple(self.types.lower(a.type) for a in target.get_arguments())
        symbol = kernel_symbol(target) if kind_of(target) is K.FUNCTION_DECL else f"?{target.spelling}"
        names = tuple(a.spelling for a in target.get_arguments())
        return ir.Kernel(target.spelling, (symbol,), parameters, outputs, priority, names)

    def leaving(self, cursor: Cursor) -> int:
        """Note a return or throw statement, so that text can be inserted before it; returns its number."""
        return self._operation(cursor, None)

    def closing(self, cursor: Cursor, block: Span) -> int:
        """Note a closing brace at which destructors run, so that text can be put before it; -1 where that cannot be."""
        statements = (c for c in cursor.get_children() if kind_of(c) is K.DECL_STMT)
        kinds = (K.VAR_DECL, K.UNEXPOSED_DECL)  # the latter is a structured binding
        declared = [c for one in statements for c in one.get_children() if kind_of(c) in kinds]
        if not any(self.types.destroys(self.types.lower(c.type)) for c in declared):
            return -1
        braces = self.text[block.start : block.start + 1] + self.text[block.end - 1 : block.end]
        if block.path != self.source.path or braces != b"{}":
            return -1
        brace = pieces(self.source.path, self.source.text).span(block.end - 1, block.end)
        self.operations.append(ir.Operation(len(self.operations), brace, brace, False, False, None))
        return len(self.operations) - 1

    def _operation(
        self, cursor: Cursor, launch: tuple[Cursor, list[Cursor]] | None, called: str = "",
        arguments: list[Cursor] | None = None, own: Cursor | None = None, *, moves: bool = False,
    ) -> int:  # fmt: skip
        """Note the operation's text; returns its number.

        `own` is a function of the user's that is called; it `moves` if that, or what is not known to be called, might.
        """
        number, anchor, path, text = len(self.operations), self.anchor, self.source.path, self.text
        span = self.span(cursor)
        stuck, stream, rename = "", None, None
        macro: ir.LaunchMacro | None = None
        defaults: tuple[str, ...] = ()
        if span.path != path:
            stuck = "it is not in this file's own text"
        elif anchor is None:
            stuck = "it stands in a loop's header or outside a function"
        elif anchor.stuck:
            stuck = anchor.stuck
        if launch is not None and not stuck:
            where = launch_stream_text(text, path, launch[0])
            macro = launch_macro(text, anchor.start, anchor.end) if where is None and anchor is not None else None
            if macro is not None:
                behind = text.index(b"(", macro.name[1]) + 1
                stream = behind, behind
            elif where is None:
                stuck = "its <<<…>>> comes from the body of a macro"
            else:
                stream, defaults = self._launch_stream(where, launch[1])
                stuck = "" if stream else "its <<<…>>> comes from the body of a macro"
        elif stuck in ("", IN_HEAD):
            texts = self._call_texts(cursor, called, arguments or [])
            stream, defaults, rename = (None, (), texts[2]) if stuck else texts
        statement = None
        if anchor is not None and span.path == path and anchor.end > anchor.start:
            end = with_semicolon(text, anchor.end)
            statement = pieces(path, self.source.text).span(anchor.start, end)
        self.operations.append(
            ir.Operation(
                number, span, statement, bool(anchor and anchor.lone), bool(anchor and anchor.stuck), stream, defaults,
                rename, stuck, macro=macro,
                call=None if not moves or stuck or statement is None else self._call_place(cursor, own, statement),
                handle=None if stuck or statement is None else self._handle_place(called, arguments, statement),
            )
        )  # fmt: skip
        return number

    def _handle_place(
        self, called: str, arguments: list[Cursor] | None, statement: Span
    ) -> tuple[str, int, int] | None:
        """What sets the stream of a library's call, and the text of its handle; None where that is not said twice."""
        setter = setter_of(called) if arguments else ""
        if not setter or not arguments:
            return None
        start, end = file_range(arguments[0])
        written = self.text[start.offset : end.offset]
        inside = statement.start <= start.offset < end.offset <= statement.end
        if not (start.file == end.file == self.source.path and inside and _NAMED.fullmatch(written)):
            return None
        whole = self.text[statement.start : statement.end]
        changes = not written.decode().isidentifier() and (b"++" in whole or b"--" in whole)
        known = self.macros.isdisjoint(re.findall(r"\w+", written.decode()))
        return (setter, start.offset, end.offset) if known and not changes else None

    def _call_place(self, cursor: Cursor, target: Cursor | None, statement: Span) -> tuple[int, int, bool] | None:
        """The text of a call that may stand behind a comma, and whether it has no value; None where that may not be.

        Where it is not known what is called, as in templates, the call is all of its statement.
        """
        inner = self.children(cursor)
        place = call_text(self.text, self.source.path, cursor, inner[0] if inner else None)
        if place is None or target is None:
            whole = self.text[statement.start : statement.end].strip().removesuffix(b";").rstrip()
            return (*place, False) if place and self.text[slice(*place)] == whole else None
        if _is_operator(target) or not self.types.may_follow_a_comma(target.result_type):
            return None
        return *place, target.result_type.get_canonical().kind is TypeKind.VOID

    def _launch_stream(
        self, where: tuple[int, int], written: list[Cursor]
    ) -> tuple[tuple[int, int] | None, tuple[str, ...]]:
        if len(written) < 4:
            return (where[1], where[1]), ("0",) * (3 - len(written))
        start, _end = file_range(written[3])
        inside = where[0] < start.offset < where[1]
        return ((start.offset, where[1]) if inside else None), ()

    def _call_texts(
        self, cursor: Cursor, called: str, arguments: list[Cursor]
    ) -> tuple[tuple[int, int] | None, tuple[str, ...], tuple[tuple[int, int], str] | None]:
        """Where a runtime API call states its stream, behind what, and what it has to be called to do so."""
        nothing = (None, (), None)
        entry = cuda_call(called, len(arguments)) if called else None
        if entry is None or (entry.stream is None and entry.async_form is None):
            return nothing
        start, _ = file_range(cursor)
        name = (start.offset, start.offset + len(called))
        renamed = entry.stream is None and not self.macros.isdisjoint((called, entry.async_form or called))
        close = closing_parenthesis(self.text, name[1])
        if self.text[slice(*name)] != called.encode() or renamed or close is None:
            return nothing  # another name would not be that macro any more
        written = [a for a in arguments if a.extent.start.offset or a.extent.end.offset]
        if entry.stream is not None and entry.stream < len(written):
            first, last = file_range(written[entry.stream])
            inside = name[1] < first.offset < last.offset <= close
            return ((first.offset, last.offset) if inside else None), (), None
        lacking = (len(arguments) if entry.stream is None else entry.stream) - len(written)
        if lacking > len(entry.defaults):
            return nothing
        left_out = entry.defaults[len(entry.defaults) - lacking :]
        return (close, close), left_out, None if entry.async_form is None else (name, entry.async_form)


def _changeable(declared: ClangType, unseen: bool) -> bool:
    """Whether a parameter is a reference through which the callee may change the argument.

    One that is `unseen` may do so through a reference to what is const, too: a mutable member, or all with a cast.
    """
    canonical = declared.get_canonical()
    refers = canonical.kind.name.endswith("REFERENCE")
    return refers and (unseen or not canonical.get_pointee().is_const_qualified())


def _is_implicit(constructor: Cursor) -> bool:
    """Whether the compiler wrote a constructor or an assignment: defaulted, or not declared by its class."""
    if constructor.is_default_method():
        return True
    if clang.pattern(constructor) is not None:
        return False
    usr = constructor.canonical.get_usr()
    return all(c.get_usr() != usr for c in constructor.semantic_parent.get_children())


def _is_operator(target: Cursor) -> bool:
    """Whether a function is called by something else than its name, or an object's, and parentheses."""
    name = str(target.spelling)
    return name.startswith("operator") and name != "operator()"
