"""libclang, as far as the front-end needs it: loading, parsing, and the few calls its Python binding lacks.

In: paths, arguments and bytes. Out: a translation unit, cursors' operators, constants and places. It is a module of
its own so that nothing else touches ctypes, and so that the oddities of several libclang versions stay here:
cursor kinds unknown to the binding, built-ins unknown to an older libclang than the headers were written for, and
places inside macro expansions.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clang import cindex
from clang.cindex import Cursor, CursorKind, SourceLocation

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, ToolchainError
from kesco.frontend.inclusions import Include, entered, included, lacks
from kesco.frontend.refusals import said, told
from kesco.frontend.standard import is_standard_path
from kesco.toolchain.mending import taken
from kesco.toolchain.precompiled import discard, find, use

BINARY_OPERATORS = (
    "? .* ->* * / % + - << >> <=> < > <= >= == != & ^ | && || = *= /= %= += -= <<= >>= &= ^= |= ,".split()
)
UNARY_OPERATORS = "? post++ post-- ++ -- & * + - ~ ! __real __imag __extension__ co_await".split()
_PREAMBLE = 0x04 | 0x100  # precompiled preamble, built on the first parse: reading the output again then costs little
_SET_ASIDE = re.compile(rb"\b(?:push|pop)_macro\b")  # a preamble does not keep the macros that were pushed in it
_DIRECTIVE = re.compile(rb"^[ \t]*(?:#|%:|\?\?=)(?:[^\\\n]|\\\r?\n|\\.)*", re.MULTILINE)
_WITHOUT_BODIES = 0x40
_ABOUT_CURSORS = "getCursorBinaryOperatorKind getCursorUnaryOperatorKind Cursor_Evaluate Cursor_isFunctionInlined"
_NO_MODULES = ("-Xclang", "-fno-cxx-modules")
"""nvcc has none, and with C++20 libclang 18 compares what comes precompiled with the rest as if both were modules."""
_TO_BE_SAVED = 0x02 | 0x10  # an incomplete translation unit, for serialization


def load(library: str) -> None:
    """Make the binding use this shared library; raises `ToolchainError` when it cannot be loaded."""
    if cindex.Config.loaded:
        return
    cindex.Config.set_library_file(library)
    try:
        lib = cindex.conf.lib
    except cindex.LibclangError as error:
        what = f"libclang cannot be loaded from {library}: {error}"
        step = "run 'kesco doctor' to see which libraries were found"
        raise ToolchainError(Diagnostic("K502", Severity.ERROR, what, help=step)) from None
    for name in _ABOUT_CURSORS.split():
        getattr(lib, f"clang_{name}").argtypes = [Cursor]
    lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    for name in "getKind getAsLongLong isUnsignedInt getAsDouble dispose".split():
        getattr(lib, f"clang_EvalResult_{name}").argtypes = [ctypes.c_void_p]
    lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    lib.clang_EvalResult_getAsDouble.restype = ctypes.c_double
    lib.clang_Location_isFromMainFile.argtypes = [SourceLocation]
    lib.clang_getFileLocation.argtypes = [SourceLocation] + [ctypes.c_void_p] * 4
    lib.clang_getCursorPrettyPrinted.argtypes = [Cursor, ctypes.c_void_p]
    lib.clang_getCursorPrettyPrinted.restype = cindex._CXString
    lib.clang_getCursorPrettyPrinted.errcheck = cindex._CXString.from_result
    lib.clang_Cursor_getVarDeclInitializer.argtypes = [Cursor]
    lib.clang_Cursor_getVarDeclInitializer.restype = Cursor
    lib.clang_Cursor_getVarDeclInitializer.errcheck = Cursor.from_cursor_result


class _IndexOptions(ctypes.Structure):
    """``CXIndexOptions`` of clang-c/Index.h, there since libclang 17."""

    _fields_ = (
        ("size", ctypes.c_uint),
        ("priorities", ctypes.c_ubyte * 2),
        ("flags", ctypes.c_ushort),  # bit 2: preambles are kept in memory
        ("preamble_path", ctypes.c_char_p),
        ("emission_path", ctypes.c_char_p),
    )


def _index() -> cindex.Index:
    """An index whose preambles stay in memory where libclang can do so: faster, and no file is left if killed."""
    create = getattr(cindex.conf.lib, "clang_createIndexWithOptions", None)
    if create is None:
        return cindex.Index.create()
    create.restype = cindex.c_object_p
    made = create(ctypes.byref(_IndexOptions(ctypes.sizeof(_IndexOptions), flags=1 << 2)))
    return cindex.Index(made) if made else cindex.Index.create()


def _library() -> str:
    return str(cindex.conf.get_filename())


def _precompile(arguments: Sequence[str], empty: Path, header: Path) -> Sequence[str] | None:
    """Save what the forced includes of an empty file come to; which files those are, or None if it does not work."""
    try:
        unit = _index().parse(str(empty), [*arguments, *_NO_MODULES], options=_TO_BE_SAVED)
        if any(d.severity >= cindex.Diagnostic.Error and not _is_wrapper(d) for d in unit.diagnostics):
            return None
        unit.save(str(header))
    except (cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
        return None
    return list(dict.fromkeys(str(one.include.name) for one in unit.get_includes()))


def _children_here(unit: cindex.TranslationUnit) -> list[Cursor]:
    """The outermost cursors that begin in the main file: thousands come from headers, and are let go at once."""
    lib, found = cindex.conf.lib, list[Cursor]()

    def visit(child: Cursor, _: Cursor, __: object) -> int:
        if lib.clang_Location_isFromMainFile(lib.clang_getCursorLocation(child)):
            child._tu = unit
            found.append(child)
        return _NEXT

    lib.clang_visitChildren(unit.cursor, cindex.callbacks["cursor_visit"](visit), None)
    return found


_NEXT = 1  # CXChildVisit_Continue
_COLLECT = cindex.callbacks["cursor_visit"](lambda child, _, found: found.append(child) or _NEXT)


def children(cursor: Cursor) -> list[Cursor]:
    """As the binding's ``get_children``, which makes a callback each time and compares each child with no child."""
    found = list[Cursor]()
    cindex.conf.lib.clang_visitChildren(cursor, _COLLECT, found)
    for child in found:
        child._tu = cursor._tu
    return found


class SourceFile:
    """The parsed translation unit of one named file, which can be parsed again with other text."""

    def __init__(self, path: str, text: bytes, arguments: tuple[str, ...]) -> None:
        """Parse `text` as the content of `path`; raises `InputError` with clang's messages for errors in user files."""
        self.path, self.text, self._arguments = path, text, arguments
        self.relocatable = "-fgpu-rdc" in arguments  # other files may name the symbols of this one
        self.read = text  # by libclang: with what nvcc alone takes in other words, each byte at its place
        _names.clear()
        self._top: list[Cursor] | None = None
        self._includes: tuple[Include, ...] | None = None
        self._headers: tuple[bytes, ...] | None = None
        header = find(Path(_library()), arguments, _precompile)
        started = header is not None and self._parse((*arguments, *use(header)))
        if not started or self._errors():  # whatever is wrong, it is told without the precompiled headers
            if not self._parse(arguments):
                what = f"clang could not read {path} with the arguments {' '.join(arguments)}"
                step = "check the flags after '--'; 'kesco doctor' shows what clang is called with"
                raise InputError(Diagnostic("K101", Severity.ERROR, what, help=step))
            self._check()
            if header is not None:
                discard(header)

    def _parse(self, arguments: tuple[str, ...]) -> bool:
        """Whether clang made a translation unit, however wrong."""
        try:
            options = 0 if _SET_ASIDE.search(self.text) else _PREAMBLE
            given = [*arguments, *_NO_MODULES]
            self.unit = _index().parse(self.path, given, [(self.path, self.read)], options=options)
        except cindex.TranslationUnitLoadError:
            return False
        return True

    def reparse(self, text: bytes) -> None:
        """Parse other text under the same name; raises `InputError` as the constructor does."""
        _names.clear()
        self._top = None
        if _DIRECTIVE.findall(text) != _DIRECTIVE.findall(self.text):
            self._includes = None
        self.text = self.read = text
        if not self._parsed_again():
            self._parse(self._arguments)
        self._check()

    def _parsed_again(self) -> bool:
        """Whether libclang could parse the text: not where the precompiled headers have gone, of which it says nothing.

        The binding does not tell either.
        """
        changed = (cindex._CXUnsavedFile * 1)()
        changed[0].name, changed[0].contents = os.fsencode(self.path), self.read
        changed[0].length = len(self.read)
        return bool(cindex.conf.lib.clang_reparseTranslationUnit(self.unit, 1, changed, _PREAMBLE) == 0)

    def _check(self) -> None:
        found = tuple(map(said, self._errors()))
        if not taken(self.read, found, self.path, self._given, same_length=True):
            raise InputError(*told(found, self.text))

    def _given(self, text: bytes) -> Sequence[Diagnostic]:
        self.read = text
        self._parse(self._arguments)
        return tuple(map(said, self._errors()))

    def _errors(self) -> list[cindex.Diagnostic]:
        return [d for d in self.unit.diagnostics if d.severity >= cindex.Diagnostic.Error and not _is_wrapper(d)]

    def top_level(self) -> list[Cursor]:
        """The declarations of the named file itself, in order."""
        if self._top is None:
            self._top = _children_here(self.unit)
        return self._top

    def includes(self) -> tuple[Include, ...]:
        """All files that are included, also through others, in the order of the text.

        Another text with the same directives includes the same ones, and `Include.at` stays what it was in the first:
        asking libclang takes as long as a third of a parse.
        """
        if self._includes is None:
            self._includes = included(self.unit)
            if lacks(self._includes, self.path, self.text, self._arguments):
                self._includes = included(_whole(self.path, self.text, self._arguments))
        return self._includes

    def user_headers(self) -> tuple[bytes, ...]:
        """The bytes of the headers that are not the system's or the toolkit's, read once: output includes no others."""
        if self._headers is None:
            found = []
            for include in self.includes():
                if not is_standard_path(include.name):
                    with contextlib.suppress(OSError):
                        found.append(Path(include.name).read_bytes())
            self._headers = tuple(found)
        return self._headers

    def included(self) -> tuple[str, ...]:
        """The files that this one includes, also through others; without those that came precompiled."""
        return tuple(dict.fromkeys(include.name for include in self.includes()))

    def is_here(self, cursor: Cursor) -> bool:
        """Whether the cursor begins in the named file."""
        return bool(cindex.conf.lib.clang_Location_isFromMainFile(cursor.location))


def inclusions(path: str, text: bytes, arguments: tuple[str, ...]) -> list[tuple[str, int, str]]:
    """Every ``#include`` that was entered: its file, its line and what it brought, in order.

    Of a `SourceFile` libclang leaves some out, because headers are precompiled there.
    """
    return entered(_whole(path, text, arguments))


def _whole(path: str, text: bytes, arguments: Sequence[str]) -> cindex.TranslationUnit:
    """A text read without what is kept of earlier readings, and without the bodies of functions."""
    return _index().parse(path, list(arguments), [(path, text)], options=_WITHOUT_BODIES)


def _is_wrapper(diagnostic: cindex.Diagnostic) -> bool:
    """Errors in Clang's own CUDA wrapper come from an older libclang reading newer headers, and are harmless."""
    file = diagnostic.location.file
    return file is not None and Path(file.name).name.startswith("__clang_cuda_")


def is_inlined(cursor: Cursor) -> bool:
    """Whether a function may be defined in several files: declared so, or in its class, or ``constexpr``."""
    return bool(cindex.conf.lib.clang_Cursor_isFunctionInlined(cursor))


_kinds: dict[int, CursorKind] = {}


def kind_of(cursor: Cursor) -> CursorKind:
    """The cursor's kind; kinds newer than the binding count as unexposed expressions."""
    found = _kinds.get(cursor._kind_id)
    if found is None:
        try:
            found = cursor.kind
        except ValueError:
            found = CursorKind.UNEXPOSED_EXPR
        _kinds[cursor._kind_id] = found
    return found


def binary_operator(cursor: Cursor) -> str:
    """The operator of a binary or compound assignment expression, as in C."""
    number = int(cindex.conf.lib.clang_getCursorBinaryOperatorKind(cursor))
    return BINARY_OPERATORS[number] if 0 <= number < len(BINARY_OPERATORS) else "?"


def unary_operator(cursor: Cursor) -> str:
    """The operator of a unary expression; ``post++`` and ``post--`` are told from ``++`` and ``--``."""
    number = int(cindex.conf.lib.clang_getCursorUnaryOperatorKind(cursor))
    return UNARY_OPERATORS[number] if 0 <= number < len(UNARY_OPERATORS) else "?"


def constant(cursor: Cursor) -> int | None:
    """The value of a constant integer expression or variable, or None."""
    lib = cindex.conf.lib
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return None
    try:
        if lib.clang_EvalResult_getKind(result) != 1:
            return None
        value = int(lib.clang_EvalResult_getAsLongLong(result))
        return value + (1 << 64) if value < 0 and lib.clang_EvalResult_isUnsignedInt(result) else value
    finally:
        lib.clang_EvalResult_dispose(result)


def literal(cursor: Cursor) -> str:
    """The value of a literal as text, wherever it is spelled; empty where libclang cannot tell."""
    if kind_of(cursor) is CursorKind.STRING_LITERAL:
        return str(cursor.spelling)
    lib = cindex.conf.lib
    result = lib.clang_Cursor_Evaluate(cursor)
    if not result:
        return ""
    try:
        whole = lib.clang_EvalResult_getKind(result) == 1
        return repr((lib.clang_EvalResult_getAsLongLong if whole else lib.clang_EvalResult_getAsDouble)(result))
    finally:
        lib.clang_EvalResult_dispose(result)


@dataclass(frozen=True, slots=True)
class Place:
    """A location as text: the file it is spelled in and whether that is inside a macro's body."""

    file: str
    offset: int
    line: int
    column: int


def file_place(location: SourceLocation) -> Place:
    """Where the location is in the file: macro arguments map to their own text, macro bodies to the invocation."""
    return _place(cindex.conf.lib.clang_getFileLocation, location)


def _place(ask: Any, location: SourceLocation) -> Place:
    handle, line, column, offset = ctypes.c_void_p(), ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    ask(location, ctypes.byref(handle), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset))
    return Place(_name_at(handle.value), offset.value, line.value, column.value)


_names: dict[int, str] = {}


def _name_at(address: int | None) -> str:
    if not address:
        return ""
    if address not in _names:
        _names[address] = str(cindex.File(ctypes.cast(address, cindex.c_object_p)).name)
    return _names[address]


def initializer(cursor: Cursor) -> Cursor | None:
    """The initialiser of a variable declaration, or None."""
    found = cindex.conf.lib.clang_Cursor_getVarDeclInitializer(cursor)
    return found if isinstance(found, Cursor) else None


def runs_at_end(cursor: Cursor) -> bool:
    """Whether a variable has a function of its own called at the end of its scope, by GNU's attribute ``cleanup``."""
    other = any(kind_of(c) is CursorKind.UNEXPOSED_ATTR for c in children(cursor))
    return other and "cleanup(" in str(cindex.conf.lib.clang_getCursorPrettyPrinted(cursor, None))


def pattern(cursor: Cursor) -> Cursor | None:
    """The template, or the member of a template, that a declaration was instantiated from; None for all others."""
    found = cindex.conf.lib.clang_getSpecializedCursorTemplate(cursor)
    return found if isinstance(found, Cursor) else None


def members(declaration: Cursor) -> list[Cursor]:
    """What a class declares; for an instance of a class template, which lists nothing, what the template declares."""
    own = list(declaration.get_children())
    if any(kind_of(c).is_declaration() or kind_of(c) is CursorKind.CXX_BASE_SPECIFIER for c in own):
        return own
    template = pattern(declaration)
    return own if template is None else list(template.get_children())
