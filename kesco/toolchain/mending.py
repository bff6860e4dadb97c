"""What nvcc takes and clang does not, written so that clang takes it: ``taken(text, errors, path, again)``.

In: a text that clang was given, and its errors. Out: the text to give it next, the same one where no error is of these
kinds. A module of its own because both sides of a program are read like that. What the user wrote stays as it is: the
text is only read, never written.

1. ``asm("…" :: "r"(x) "l"(y))``: the comma that nvcc does not miss.
2. ``asm("mov.u64 %0, %clock64;" …)``: the percent sign of a register is doubled.
3. ``T list[n] = {0};`` where ``n`` is no constant: the elements are set to zero by a statement.
4. ``__shared__ T object;`` whose constructor nvcc does not run: memory of its size, and a reference to it.

Where every byte must keep its place (`same_length`: libclang's half, which only looks at the host's code and where it
stands), 1 takes the place of a blank, 2 and 4 leave out the sign and the word, and 3 the zeroes: nobody knows then what
is in the array. It refuses whatever looks different from these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kesco.diagnostics import Diagnostic

Edit = tuple[int, int, bytes]
_OPERAND = re.compile(rb'"[^"\n]*"\s*\(')
_ASM = re.compile(rb"\b(?:asm|__asm__|__asm)\b")
_ZEROES = re.compile(rb"[^;{}\[\]]*\](?:\s*\[[^\[\];]*\])*\s*(=\s*\{\s*(?:0|NULL|nullptr)?\s*\}\s*);")
_ARRAY = re.compile(rb"([A-Za-z_]\w*)\s*\[[^;{}\[\]]*$")
_SHARED = re.compile(rb"__shared__([^;{}]*)$")
_REST = re.compile(rb"([A-Za-z_]\w*)((?:\s*\[[^\[\];]*\])*)\s*;")
_FAR = 2000
_ROUNDS = 8


def taken(
    text: bytes,
    errors: Sequence[Diagnostic],
    path: str,
    again: Callable[[bytes], Sequence[Diagnostic]],
    *,
    same_length: bool,
) -> bool:
    """Whether clang takes the text in the end; `again` gives it another one and says what is wrong with that."""
    for _ in range(_ROUNDS):
        if not errors or (other := mended(text, errors, path, same_length)) == text:
            break
        text, errors = other, again(other)
    return not errors


def mended(text: bytes, errors: Sequence[Diagnostic], path: str, same_length: bool) -> bytes:
    """The text without what these errors of the file `path` are about, as far as it can be."""
    edits: dict[int, Edit] = {}
    for error in errors:
        if error.span is None or error.span.path != path:
            continue
        at = _offset(text, error.span.line, error.span.column)
        for message, mend in _KINDS:
            if re.search(message, error.message) and (edit := mend(text, at, same_length)):
                edits[edit[0]] = edit
    for start, end, new in sorted(edits.values(), reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _offset(text: bytes, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find(b"\n", start) + 1
    return start + column - 1


def _comma(text: bytes, at: int, same_length: bool) -> Edit | None:
    before = text[max(0, at - _FAR) : at]
    operands = _OPERAND.match(text, at) and before.rstrip().endswith(b")") and _ASM.search(before)
    if not operands or (same_length and before[-1:] not in (b" ", b"\t")):
        return None
    return (at - 1, at, b",") if before[-1:] in (b" ", b"\t") else (at, at, b",")


def _percent(text: bytes, at: int, same_length: bool) -> Edit | None:
    found = text.rfind(b"%", max(0, at - 3), at + 1)
    return None if found < 0 else (found, found + 1, b" " if same_length else b"%%")


def _zeroes(text: bytes, at: int, same_length: bool) -> Edit | None:
    match, array = _ZEROES.match(text, at), _ARRAY.search(text, max(0, at - _FAR), at)
    if match is None or array is None:
        return None
    if same_length:
        return match.start(1), match.end(1), re.sub(rb"[^\n]", b" ", match[1])
    return match.start(1), match.end(1), b"; __builtin_memset(%s, 0, sizeof(%s))" % (array[1], array[1])


def _shared(text: bytes, at: int, same_length: bool) -> Edit | None:
    before, rest = _SHARED.search(text, max(0, at - _FAR), at), _REST.match(text, at)
    if before is None or rest is None or b"," in _without_arguments(before[1]):
        return None
    if same_length:
        return before.start(), before.start(1), b" " * len(b"__shared__")
    of, name = before[1].rstrip(), rest[1]
    kind, memory = b"__kesco_t%d" % at, b"__kesco_m%d" % at
    new = b"typedef%s %s%s; __shared__ alignas(%s) char %s[sizeof(%s)]; %s& %s = *reinterpret_cast<%s*>(%s);"
    return before.start(), rest.end(), new % (of, kind, rest[2], kind, memory, kind, kind, name, kind, memory)


def _without_arguments(text: bytes) -> bytes:
    """A type without the arguments of templates."""
    while (less := re.sub(rb"<[^<>]*>", b"", text)) != text:
        text = less
    return text


_KINDS: tuple[tuple[str, Callable[[bytes, int, bool], Edit | None]], ...] = (
    (r"expected '\)'", _comma),
    (r"invalid % escape in inline assembly", _percent),
    (r"variable-sized object may not be initialized", _zeroes),
    (r"initialization is not supported for __shared__", _shared),
)
