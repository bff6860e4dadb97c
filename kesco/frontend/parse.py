"""One CUDA file → `ir.program.Program`.

In: the path, the bytes and the arguments for clang. Out: every host function with a body in the named file, its
globals and records. It is the first stage, and the only one (with its siblings in this package) that knows libclang.

1. Parse. 2. Walk the file's own declarations through namespaces and classes. 3. Lower each host function; kernels and
device functions are left to the device IR. 4. Note what concerns the whole file: host threads, OpenMP, the
per-thread default stream.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from clang.cindex import Cursor, CursorKind

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.expressions import is_kernel
from kesco.frontend.functions import Functions
from kesco.frontend.invocations import kernel_symbol
from kesco.frontend.types import TypeTable
from kesco.ir import program as ir
from kesco.source import Span

K = CursorKind
_FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION}
_CONTAINERS = {
    K.NAMESPACE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL, K.STRUCT_DECL, K.CLASS_DECL, K.CLASS_TEMPLATE,
    K.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
}  # fmt: skip
_CLASSES = _CONTAINERS - {K.NAMESPACE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL}
_THREADS = re.compile(
    rb"\bstd\s*::\s*(?:jthread|thread|async)\b|\bpthread_create\b|\bthrd_create\b|#\s*include\s*<(?:thread|pthread\.h)>"
)
_OPENMP = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+omp\b", re.MULTILINE)
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_PRAGMA = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+kesco\b([^\n]*)", re.MULTILINE)
_STATED = re.compile(r"\s*kernel\s*\(\s*([\w:]+)\s*\)((?:\s*(?:reads|writes)\s*\([^)]*\))*)\s*$")
_CLAUSE = re.compile(r"(reads|writes)\s*\(([^)]*)\)")
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)


def parse(source: SourceFile, arguments: tuple[str, ...] = (), earlier: ir.Program | None = None) -> ir.Program:
    """The host side of an already parsed file.

    `arguments` are clang's, searched for ``-D`` that matter. `earlier` is the program of an earlier parse of the same
    file, whose functions in headers need not be lowered again.
    """
    types = TypeTable()
    statements = Functions(source, types)
    statements.macros = _macros(source)
    known = tuple(f for f in earlier.functions if not f.here) if earlier else ()
    if earlier:  # their operations and loops keep their numbers
        statements.operations += earlier.operations
        statements.first_operation = len(statements.operations)
        statements.loops = 1_000_000
        types.records.update(earlier.records)
    functions: list[ir.Function] = []
    variables: list[tuple[ir.Variable, ir.Expr | None]] = []
    kernels: list[str] = []
    _walk(source.top_level(), statements, functions, variables, kernels, "")
    functions += _elsewhere(statements, {f.key for f in (*functions, *known)})
    functions += known
    statements.share()
    names = _mentions(source)
    declared = Counter(c.get_usr() for c in source.top_level() if kind_of(c) is K.FUNCTION_DECL)
    done = tuple(
        replace(f, address_taken=f.key in statements.taken, declared=declared[f.key] or 1, mentioned=names[f.name])
        for f in functions
    )
    constructs = tuple(statements.seen) + _file_wide(source, arguments)
    return ir.Program(
        source.path, source.text, done, tuple(variables), types.records, tuple(statements.operations), constructs,
        tuple(kernels), _stated(source), statements.launched,
    )  # fmt: skip


def _macros(source: SourceFile) -> frozenset[str]:
    """The names that the file and the user's headers define as macros."""
    found = [name for text in (source.text, *source.user_headers()) for name in _MACRO.findall(text)]
    return frozenset(name.decode() for name in found)


def _mentions(source: SourceFile) -> Counter[str]:
    """How often each identifier stands in the file's text, comments left out."""
    bare = _COMMENT.sub(lambda m: b" " * len(m.group()), source.text)
    return Counter(w.decode() for w in re.findall(rb"[A-Za-z_]\w*", bare))


def _elsewhere(statements: Functions, known: set[str]) -> list[ir.Function]:
    """Functions that the file calls and whose bodies are in user headers or are instances of templates."""
    found: list[ir.Function] = []
    while statements.elsewhere:
        key, cursor = statements.elsewhere.popitem()
        if key in known:
            continue
        known.add(key)
        body = cursor.get_definition()
        if body is None or kind_of(body) is K.FUNCTION_TEMPLATE or _device_only(body) or is_kernel(body):
            continue
        owner = body.semantic_parent
        function = statements.function(body, owner.get_usr() if _is_class(owner) else "", here=False)
        if function is not None and function.key == key:
            found.append(function)
    return found


def _walk(
    cursors: list[Cursor],
    statements: Functions,
    functions: list[ir.Function],
    variables: list[tuple[ir.Variable, ir.Expr | None]],
    kernels: list[str],
    record: str,
) -> None:
    for cursor in cursors:
        kind = kind_of(cursor)
        if cursor.lexical_parent is None or kind_of(cursor.lexical_parent) is K.TRANSLATION_UNIT:
            statements.top = cursor.extent.start.offset
        if kind in _FUNCTIONS:
            if is_kernel(cursor):
                if kind is K.FUNCTION_DECL:
                    kernels.append(kernel_symbol(cursor))
            elif not _device_only(cursor):
                owner = record or (cursor.semantic_parent.get_usr() if _is_class(cursor.semantic_parent) else "")
                found = statements.function(cursor, owner)
                if found is not None:
                    functions.append(found)
        elif kind is K.VAR_DECL:
            initial = clang.initializer(cursor)
            statements.anchor = None
            value = statements.unanchored(initial) if initial is not None else None
            variables.append((statements.variable(cursor), value))
        elif kind in _CONTAINERS:
            owner = cursor.get_usr() if kind in _CLASSES else record
            _walk(list(cursor.get_children()), statements, functions, variables, kernels, owner)


def _is_class(cursor: Cursor | None) -> bool:
    return cursor is not None and kind_of(cursor) in _CLASSES


def _device_only(cursor: Cursor) -> bool:
    kinds = {kind_of(c) for c in cursor.get_children()}
    return K.CUDADEVICE_ATTR in kinds and K.CUDAHOST_ATTR not in kinds


def _file_wide(source: SourceFile, arguments: tuple[str, ...]) -> tuple[tuple[str, Span], ...]:
    found: list[tuple[str, Span]] = []
    bare = _COMMENT.sub(lambda m: b" " * len(m.group()), source.text)
    for name, pattern in (("threads", _THREADS), ("openmp", _OPENMP)):
        match = pattern.search(bare)
        if match:
            found.append((name, _span_at(source, match.start(), match.end())))
    per_thread = b"CUDA_API_PER_THREAD_DEFAULT_STREAM" in bare or any(
        "CUDA_API_PER_THREAD_DEFAULT_STREAM" in a or "default-stream=per-thread" in a for a in arguments
    )
    if per_thread or any(a == "per-thread" for a in arguments):
        found.append(("per-thread-stream", _span_at(source, 0, 1)))
    return tuple(found)


def _stated(source: SourceFile) -> tuple[ir.Stated, ...]:
    """The ``#pragma kesco`` lines; raises `InputError` for one that cannot be read."""
    found = []
    bare = _COMMENT.sub(lambda m: b" " * len(m.group()), source.text)
    for match in _PRAGMA.finditer(bare):
        span = _span_at(source, match.start(), match.end())
        stated = _STATED.match(match[1].decode("utf-8", "replace"))
        if stated is None:
            raise InputError(
                Diagnostic("K105", Severity.ERROR, "this pragma is not understood", span,
                           help="write '#pragma kesco kernel(name) reads(a, b) writes(c)' with its parameter names")
            )  # fmt: skip
        names: dict[str, tuple[str, ...]] = {"reads": (), "writes": ()}
        for clause, inside in _CLAUSE.findall(stated[2]):
            names[clause] += tuple(n.strip() for n in inside.split(",") if n.strip())
        found.append(ir.Stated(stated[1].rpartition("::")[2], names["reads"], names["writes"], span))
    return tuple(found)


def _span_at(source: SourceFile, start: int, end: int) -> Span:
    line = source.text.count(b"\n", 0, start) + 1
    return Span(source.path, start, end, line, start - source.text.rfind(b"\n", 0, start))
