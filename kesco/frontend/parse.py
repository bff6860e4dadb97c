"""One CUDA file → `ir.program.Program`.

In: the path, the bytes and the arguments for clang. Out: every host function with a body in the named file, its
globals and records. It is the first stage, and the only one (with its siblings in this package) that knows libclang.

1. Parse. 2. Walk the file's own declarations through namespaces and classes. 3. Lower each host function; kernels and
device functions are left to the device IR. 4. Lower what the file calls in headers, and what else in headers may call
its static functions or change its static variables. 5. Note what concerns the whole file: host threads, OpenMP, the
per-thread default stream, names of macros. A file that the user's compiler may read as another program than clang does
here (`toolchain.readings`) stays serial.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from os.path import normpath
from pathlib import Path

from clang.cindex import Cursor, CursorKind, StorageClass

from kesco.frontend import clang
from kesco.frontend.clang import SourceFile, kind_of
from kesco.frontend.constant_symbols import keep_to_themselves
from kesco.frontend.declarations import CLASSES, FUNCTIONS
from kesco.frontend.expressions import is_kernel
from kesco.frontend.functions import Functions
from kesco.frontend.headers import is_shared
from kesco.frontend.invocations import kernel_symbol
from kesco.frontend.pragmas import Pragmas, span_at
from kesco.frontend.replaceable import by_pragma, replaceable
from kesco.frontend.settled import settled
from kesco.frontend.standard import is_standard_path
from kesco.frontend.types import TypeTable
from kesco.ir import program as ir
from kesco.ir.pieces import pieces
from kesco.source import Span

K = CursorKind
_CONTAINERS = CLASSES | {K.NAMESPACE, K.LINKAGE_SPEC, K.UNEXPOSED_DECL, K.FRIEND_DECL}
_CALLED_UNNAMED = re.compile(r"operator\b|~|(?:begin|end|swap|iter_swap|iter_move|get|size|data)$")
_MANAGED = re.compile(rb"__managed__")
_SHARED = re.compile(
    rb"\bcuda(?:MallocManaged|MallocHost|HostAlloc|HostRegister)\b|\bcuMem(?:AllocManaged|AllocHost|HostAlloc|HostRegister)"
    rb"|__managed__|\buniversal_\w|\b(?:pinned|managed)_\w*(?:allocator|resource)\b"
)
_TIMES = re.compile(rb"cudaEventElapsedTime")
_SAYS = re.compile(rb"%m\b|\bperror\b")
_CATCH = re.compile(rb"\bcatch\s*\(")
_THREADS = re.compile(
    rb"\bstd\s*::\s*(?:jthread|thread|async)\b|\bpthread_create\b|\bthrd_create\b|\bexecution\s*::\s*par(?:_unseq)?\b"
    rb"|\bboost\s*::\s*(?:thread|async)\b"
    rb'|#\s*include\s*[<"](?:thread|future|execution|pthread\.h|threads\.h|tbb/|boost/thread|boost/asio)'
)
_UNQUALIFIED = re.compile(rb"\b(?:jthread|thread|async)\b\s*[\w({]")
_USING_STD = re.compile(rb"\busing\s+namespace\s+std\b|\busing\s+std\s*::\s*(?:jthread|thread|async)\b")
_OPENMP = re.compile(rb'^[ \t]*#[ \t]*pragma[ \t]+omp\b|\b_Pragma\s*\(\s*"\s*omp\b', re.MULTILINE)
_COROUTINES = re.compile(rb"\bco_(?:await|yield|return)\b")
_SECOND = re.compile(  # names of one thing: by attributes, as assemblers see them, by a pragma
    rb'\b(?:__)?(?:alias|ifunc|weakref)(?:__)?\s*\(\s*["#]|\bredefine_extname\b'
    rb"|\b__attribute(?:__)?\s*\(\s*\([^;{}]*?\b(?:__)?(?:alias|ifunc|weakref)(?:__)?\s*\("
    rb'|[\w)\]]\s*\b(?:asm|__asm|__asm__)\s*\(\s*(?:"[\w.$]*"\s*)*(?:[A-Za-z_]|"[\w.$]*"\s*\))'
)
_OPERATOR = re.compile(rb"\boperator\s*[^\w\s;]|\bswap\s*\([^)]*&")
_ALLOCATION = re.compile(rb"\boperator\s*(?:new|delete)\b")
_WRAPPED = re.compile(  # they keep the addresses of what they are made of
    rb"\breference_wrapper\b|\b(?:pair|tuple)\s*<(?:[^<>;{}()]|<[^<>;{}()]*>)*&"
)
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)
_COMMENT = re.compile(
    rb'R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|(//[^\n]*|/\*.*?\*/)', re.DOTALL
)  # a comment, or what only looks like one inside a literal
_CONTINUED = re.compile(rb"\\[ \t]*\r?\n")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_IN_OUR_MANNER = re.compile(rb"\b[Kk]esco\w*")
_OUR_MEMBERS = re.compile(rb"\bkesco\w*\s*->\s*\w+|\bnamespace \{ struct Kesco[^\n]*")
"""What kesco's own text names that a function of the program's may be called, too."""


def parse(
    source: SourceFile, arguments: tuple[str, ...] = (), earlier: ir.Program | None = None, unsure: str = "",
    heads: bool = True,
) -> ir.Program:  # fmt: skip
    """The host side of an already parsed file.

    `arguments` are clang's, searched for ``-D`` that matter. `earlier` is the program of an earlier parse of the same
    file, whose functions in headers need not be lowered again. `unsure` says why the text may mean something else to
    the compiler that will build it. Without `heads`, what is in the condition of a branch stays where it is.
    """
    texts = own_texts(source, arguments)
    asked = (_OPERATOR, _ALLOCATION, _WRAPPED)  # without comments: the output's say ``std::array::operator[]``
    types = TypeTable(*(any(one.search(text.bare) for text in texts) for one in asked))
    statements = Functions(source, types)
    statements.heads = heads
    defined = _macros(texts, arguments)
    statements.macros = frozenset(defined)
    # functions within the file, such as those of local classes, are lowered again, since their places changed
    known = tuple(f for f in earlier.functions if not f.here and f.span.path != source.path) if earlier else ()
    if earlier:  # their operations and loops keep their numbers
        statements.operations += earlier.operations
        statements.first_operation = len(statements.operations)
        statements.loops = 1_000_000
        types.records.update(earlier.records)
    functions: list[ir.Function] = []
    variables: list[tuple[ir.Variable, ir.Expr | None]] = []
    kernels: list[str] = []
    lower = _Walk(statements, functions, variables, kernels)
    lower.walk(source.top_level(), "")
    functions += known
    functions += _elsewhere(statements, {f.key for f in functions})
    if earlier is None:
        _referring(source, texts, statements, lower)
    statements.share()
    names = Counter(w.decode() for w in _WORD.findall(_OUR_MEMBERS.sub(b"", texts[0].bare)))
    declared = Counter(c.get_usr() for c in source.top_level() if kind_of(c) is K.FUNCTION_DECL)
    asks = f"code that may depend on the compiler ({unsure})" if unsure else ""
    replaced = replaceable((text.bare for text in texts), _given(arguments, "-D"))
    done = tuple(
        replace(
            f, address_taken=f.key in statements.taken or bool(f.method_of) or bool(_CALLED_UNNAMED.match(f.name)),
            declared=declared[f.key] or 1, mentioned=names[f.name], virtual=f.virtual or replaced(f.name),
            body=ir.Block(f.body.span, (ir.Obstacle(f.span, asks), f.body)) if asks and f.here else f.body,
        )
        for f in functions
    )  # fmt: skip
    done = settled(done, (*filter(None, (initial for _, initial in variables)), *statements.inside))
    constructs = (*statements.seen, *_file_wide(source, texts, arguments))
    # what the output inserts uses names with small letters, and such macros would change it
    constructs += tuple((f"macro {n}", at) for n, at in defined.items() if any(c.islower() for c in n))
    constructs += tuple(_names_in_headers(texts))
    files = pieces(source.path, source.text)
    constructs = tuple((n, files.span(at.start, at.end) if at.path == source.path else at) for n, at in constructs)
    kept = keep_to_themselves([text.bare for text in texts], (one for one, _ in variables))
    globals_ = tuple(zip(kept, (initial for _, initial in variables), strict=True))
    said = Pragmas(source.path, texts[0].bare, files)
    return ir.Program(
        source.path, source.text, done, globals_, types.records, tuple(statements.operations), constructs,
        tuple(kernels), said.stated(), statements.launched, said.tasks(done) if earlier is None else (),
        by_pragma(text.bare for text in texts), tuple(statements.inside),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnText:
    """The file or a header of the user's. `bare` has blanks for comments; `at` is where in the file it is included."""

    name: str
    bare: bytes
    at: int


def own_texts(source: SourceFile, arguments: tuple[str, ...]) -> tuple[OwnText, ...]:
    """The file itself, then the user's headers, also those that only the command line names."""
    found = [OwnText(source.path, _bare(source.text), 0)]
    at, included = 0, list[tuple[str, int]]()
    for one in source.includes():
        at = one.at if one.depth == 1 else at
        if not is_standard_path(one.name):
            included.append((one.name, at))
    folders = [Path(), *map(Path, _given(arguments, "-I", "-iquote", "-isystem"))]
    forced = _given(arguments, "-include", "-imacros")  # libclang does not list them, nor what they include
    work = [*((name, 0, Path()) for name in forced), *((name, place, Path()) for name, place in included)]
    while work:
        name, place, beside = work.pop(0)
        path = next((f / name for f in (beside, *folders) if (f / name).is_file()), None)
        if path is None or is_standard_path(str(path)) or any(Path(t.name) == path for t in found[1:]):
            continue
        with contextlib.suppress(OSError):
            found.append(OwnText(str(path), _bare(path.read_bytes()), place))
            if name in forced:
                inner = [m.decode("utf-8", "replace") for m in _INCLUDE.findall(found[-1].bare)]
                forced += inner
                work += [(one, 0, path.parent) for one in inner]
    return tuple(found)


def _given(arguments: tuple[str, ...], *flags: str) -> list[str]:
    """The values of these flags, in the same argument or in the next one."""
    found = [b for a, b in pairwise(arguments) if a in flags]
    return found + [a[len(f) :] for a in arguments for f in flags if a.startswith(f) and a != f]


def _bare(text: bytes) -> bytes:
    """A text without its comments; every byte stays where it is, and so do literals."""
    return _COMMENT.sub(lambda m: b" " * len(m.group()) if m[2] else m.group(), text)


def _macros(texts: tuple[OwnText, ...], arguments: tuple[str, ...]) -> dict[str, Span]:
    """The names that the file, the user's headers and the command line define as macros."""
    top = Span(texts[0].name, 0, 1, 1, 1)
    given = (one for one in _given(arguments, "-D") if not one.startswith("__nvvm"))
    found = {re.split(r"[=(]", one)[0]: top for one in given}
    for text in texts:
        for match in _MACRO.finditer(_CONTINUED.sub(lambda m: b" " * len(m.group()), text.bare)):
            found.setdefault(match[1].decode(), span_at(text.name, text.bare, match.start(1), match.end(1)))
    return found


def _referring(source: SourceFile, texts: tuple[OwnText, ...], statements: Functions, lower: _Walk) -> None:
    """Lower the headers whose functions may name what only this file can: static variables and functions.

    Others may call such a function, whether or not this file does. What is declared for the first time behind the
    place of an include has no name there.
    """
    words = [{w.decode() for w in _WORD.findall(t.bare)} for t in texts]
    left = set(range(1, len(texts)))
    while left:
        own = {normpath(texts[i].name) for i in set(range(len(texts))) - left}
        names: dict[str, int] = {}
        for variable in statements.variables.values():
            if variable.internal and variable.scope is ir.Scope.GLOBAL and variable.constant is None:
                at = variable.span.start if variable.span.path == source.path else -1
                names[variable.name] = min(at, names.get(variable.name, at))
        for function in lower.functions:
            if function.internal and normpath(function.span.path) in own:
                path, at = statements.first.get(function.key, ("", -1))
                at = at if path == source.path else -1
                names[function.name] = min(at, names.get(function.name, at))
        found = {i for i in left if any(names[n] < texts[i].at or names[n] < 0 for n in words[i] & names.keys())}
        if not found:
            return
        left -= found
        files = {normpath(texts[i].name) for i in found}  # of a file in this folder libclang has ``./name.h``
        cursors = [c for c in source.unit.cursor.get_children() if (f := c.location.file) and normpath(f.name) in files]
        lower.here = False
        lower.walk(cursors, "")
        lower.functions += _elsewhere(statements, {f.key for f in lower.functions})


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


@dataclass(slots=True)
class _Walk:
    """Collects the functions, variables and kernels of declarations; those of headers (not `here`) are not edited."""

    statements: Functions
    functions: list[ir.Function]
    variables: list[tuple[ir.Variable, ir.Expr | None]]
    kernels: list[str]
    here: bool = True

    def walk(self, cursors: Iterable[Cursor], record: str, outermost: bool = True) -> None:
        """Collect from declarations inside the class `record`, if it is not empty."""
        for cursor in cursors:
            kind = kind_of(cursor)
            if outermost:
                self.statements.top = cursor.extent.start.offset
            if kind in FUNCTIONS:
                self._function(cursor, record)
            elif kind is K.VAR_DECL:
                self._variable(cursor)
            elif kind is K.FIELD_DECL:
                self._member(cursor)
            elif kind in _CONTAINERS:
                owner = cursor.get_usr() if kind in CLASSES else "" if kind is K.FRIEND_DECL else record
                self.walk(cursor.get_children(), owner, outermost=False)

    def _function(self, cursor: Cursor, record: str) -> None:
        if is_kernel(cursor):
            if kind_of(cursor) is K.FUNCTION_DECL and self.here:
                self.kernels.append(kernel_symbol(cursor))
        elif not _device_only(cursor):
            owner = record or (cursor.semantic_parent.get_usr() if _is_class(cursor.semantic_parent) else "")
            if not self.here and any(f.key == cursor.canonical.get_usr() for f in self.functions):
                return
            found = self.statements.function(cursor, owner, here=self.here and not self._is_shared(cursor))
            if found is not None:
                self.functions += [found, *(self.statements.closures or ())]
            self.statements.closures = None

    def _is_shared(self, cursor: Cursor) -> bool:
        """Whether it is a header's, and other files may have it, too."""
        files = pieces(self.statements.source.path, self.statements.source.text)
        return files.is_header(int(cursor.extent.start.offset)) and is_shared(cursor)

    def _variable(self, cursor: Cursor) -> None:
        initial = clang.initializer(cursor)
        self.statements.anchor = None
        value = self.statements.unanchored(initial) if initial is not None else None
        variable = self.statements.variable(cursor)
        if value is None and variable.type.shape is ir.Shape.ARRAY and cursor.storage_class is not StorageClass.EXTERN:
            value = ir.InitList(())  # zeros
        if self.here:
            self.variables.append((variable, value))
        if value is not None and any(isinstance(n, (ir.Call, ir.Unknown)) for n in ir.walk(value)):
            # what it calls, and the lambdas in it, run at times that are not followed: like code of another file
            body = ir.Evaluate(variable.span, value)
            key = f"initialiser of {variable.key}"
            self.functions.append(ir.Function(key, "", (), body, variable.span, False, True, here=False))

    def _member(self, cursor: Cursor) -> None:
        hidden = self.statements.hidden
        for initial in (one for one in clang.children(cursor) if kind_of(one).is_expression()):
            if any(kind_of(one) is K.CALL_EXPR for one in initial.walk_preorder()):
                value = self.statements.unanchored(initial)
                self.statements.inside.append(ir.Evaluate(self.statements.span(cursor), value))
        self.statements.hidden = hidden


def _is_class(cursor: Cursor | None) -> bool:
    return cursor is not None and kind_of(cursor) in CLASSES


def _device_only(cursor: Cursor) -> bool:
    kinds = {kind_of(c) for c in clang.children(cursor)}
    return K.CUDADEVICE_ATTR in kinds and K.CUDAHOST_ATTR not in kinds


def _names_in_headers(texts: tuple[OwnText, ...]) -> Iterator[tuple[str, Span]]:
    """The names in the user's headers that may be those that the output inserts."""
    for text in texts[1:]:
        found = {m[0].decode(): m for m in _IN_OUR_MANNER.finditer(text.bare)}
        yield from ((f"name {n}", span_at(text.name, text.bare, m.start(), m.end())) for n, m in found.items())


def _file_wide(
    source: SourceFile, texts: tuple[OwnText, ...], arguments: tuple[str, ...]
) -> tuple[tuple[str, Span], ...]:
    found: list[tuple[str, Span]] = []
    patterns = [("threads", _THREADS), ("openmp", _OPENMP), ("managed", _MANAGED), ("coroutines", _COROUTINES)]
    patterns += [
        ("second names", _SECOND),
        (ir.SHARED, _SHARED),
        (ir.TIMES, _TIMES),
        (ir.CATCH, _CATCH),
        (ir.SAYS, _SAYS),
    ]
    if any(_USING_STD.search(t.bare) for t in texts):
        patterns.append(("threads", _UNQUALIFIED))
    for name, pattern in patterns:
        for text in texts:
            match = pattern.search(text.bare)
            if match:
                found.append((name, span_at(text.name, text.bare, match.start(), match.end())))
                break
    per_thread = any(b"CUDA_API_PER_THREAD_DEFAULT_STREAM" in t.bare for t in texts) or any(
        "CUDA_API_PER_THREAD_DEFAULT_STREAM" in a or "default-stream=per-thread" in a for a in arguments
    )
    if any("__managed__" in a for a in arguments):
        found.append(("managed", Span(source.path, 0, 1, 1, 1)))
    if any(_SHARED.search(a.encode()) for a in arguments):
        found.append((ir.SHARED, Span(source.path, 0, 1, 1, 1)))
    if per_thread or any(a == "per-thread" for a in arguments):
        found.append(("per-thread-stream", Span(source.path, 0, 1, 1, 1)))
    return tuple(found)
