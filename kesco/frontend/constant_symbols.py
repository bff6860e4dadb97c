"""Whether a ``__constant__`` variable is only ever written by its name: ``keep_to_themselves(…)``.

In: the user's texts without comments; the variables of a file. Out: the same, `fixed` where each use of the name is a
declaration, an argument of ``cudaMemcpyToSymbol`` and ``cudaMemcpyFromSymbol`` or a ``sizeof``, or stands in code that
only the device runs, as an element, a member or a number in arithmetic. Then no code of the host has the address, nor
is one given to it; and no kernel can write such a variable.

It refuses whatever looks otherwise: the address may go to code that is not seen. Names that are pasted together are
not seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from kesco.frontend.operations import closing
from kesco.ir.types import Shape, Variable

_NAMED = rb"\s*(?:(?:\w+\s*)?::\s*)*$"
_COPIED = re.compile(
    rb"(?:(?:cudaMemcpyTo|kesco_copy_to_)[Ss]ymbol\w*\s*\(|(?:cudaMemcpyFrom|kesco_copy_from_)[Ss]ymbol\w*\s*\([^(),;{}]*,)"
    + _NAMED
)
_MEASURED = re.compile(rb"\bsizeof\s*\(?" + _NAMED)
_DECLARED = re.compile(rb"(?:^|[;}\n])\s*(?:static\s+)?__constant__[^;(){}=]*$")
_DEVICE = re.compile(rb"\b__(?:global|device)__\b")
_CHOSEN = re.compile(rb"^[ \t]*#[ \t]*(?!pragma\b)", re.M)  # by the preprocessor: braces may not match
_QUALIFIED = re.compile(rb"(?:(?:\w+\s*)?::\s*)*$")
_ARITHMETIC = b"*/%+-<>!|^"
_FAR = 400  # bytes that are looked at in front of a name


def keep_to_themselves(texts: Collection[bytes], variables: Iterable[Variable]) -> list[Variable]:
    """The variables, no longer `fixed` where the address may be known by another name."""
    known = list(variables)
    if not any(one.fixed for one in known):
        return known
    pasted = any(b"##" in text for text in texts)
    code = [(text, list(_of_the_device(text))) for text in texts]
    return [replace(v, fixed=v.fixed and not pasted and all(_is_kept(v, *one) for one in code)) for v in known]


def _of_the_device(text: bytes) -> Iterator[range]:
    """The bodies of functions that only the device runs."""
    for word in _DEVICE.finditer(text):
        body = text.find(b"{", word.end())
        head = text[max(text.rfind(end, 0, word.start()) for end in (b";", b"}", b"{")) + 1 : body]
        alone = body >= 0 and b";" not in head and b"__host__" not in head
        end = closing(text, body, b"{", b"}") if alone else None
        if end is not None and not _CHOSEN.search(text, body, end):
            yield range(body, end)


def _is_kept(variable: Variable, text: bytes, device: Collection[range]) -> bool:
    array = variable.type.shape is Shape.ARRAY
    for use in re.finditer(rb"(?<!\w)" + re.escape(variable.name.encode()) + rb"(?!\w)", text):
        before = text[max(use.start() - _FAR, 0) : use.start()]
        named = any(one.search(before) for one in (_COPIED, _MEASURED, _DECLARED))
        there = any(use.start() in body for body in device)
        if not named and not (there and _is_value(before, text[use.end() : use.end() + _FAR].lstrip(), array=array)):
            return False
    return True


def _is_value(before: bytes, behind: bytes, *, array: bool) -> bool:
    """Whether code of the device uses a part of a variable, or its value."""
    before = _QUALIFIED.sub(b"", before).rstrip()
    addressed = before.endswith(b"&") and not before.endswith(b"&&")
    if addressed or behind[:1] in (b"[", b"."):
        return not addressed
    return not array and any(one and one in _ARITHMETIC for one in (before[-1:], behind[:1]))
