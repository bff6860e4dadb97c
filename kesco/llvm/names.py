"""The name a person knows a kernel by, from its mangled one: ``_ZN2ns4blurIfEvPT_`` is ``ns::blur``.

Only what kernels and destructors are called is read: names, namespaces (nested, anonymous, ``std``), internal linkage.
Template arguments and parameters are dropped. Everything else keeps its mangled name, which is never wrong.

Names in LLVM's text are matched by `NAME`, and may have quotes around them.
"""

from __future__ import annotations

import re

NAME = r'@("(?:[^"\\]|\\[0-9A-F]{2})*"|[-\w.$]+)'
_STUB = re.compile(r"(\d*)__device_stub__")
_SOURCE_NAME = re.compile(r"L?(\d+)")
_DESTRUCTOR = re.compile(r"(?:I.*E)?D[0-2]Ev$")  # behind its class


_OPERATORS = {
    "ml": "*", "de": "*", "pl": "+", "ps": "+", "mi": "-", "ng": "-", "dv": "/", "rm": "%", "an": "&", "ad": "&",
    "or": "|", "eo": "^", "co": "~", "nt": "!", "aS": "=", "pL": "+=", "mI": "-=", "mL": "*=", "dV": "/=", "rM": "%=",
    "aN": "&=", "oR": "|=", "eO": "^=", "ls": "<<", "rs": ">>", "lS": "<<=", "rS": ">>=", "eq": "==", "ne": "!=",
    "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "aa": "&&", "oo": "||", "pp": "++", "mm": "--", "cm": ",",
    "pt": "->", "pm": "->*", "cl": "()", "ix": "[]",
}  # fmt: skip
_OPERATOR = re.compile(rf"(?:I.*E)?({'|'.join(_OPERATORS)})(?=[A-Z\d])")  # behind its class, or alone


def bare(name: str) -> str:
    """A global's name without LLVM's quotes and escapes."""
    if not name.startswith('"'):
        return name
    raw = re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), name[1:-1])
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def display_name(mangled: str) -> str:
    """The source name without template arguments and parameters, or `mangled` itself."""
    if not mangled.startswith("_Z"):
        return mangled
    nested = mangled.startswith("_ZN")
    text = mangled.encode().decode("latin-1")  # lengths count bytes
    parts, at = _parts(text)
    if nested and parts and _DESTRUCTOR.match(text, at):
        return f"~{parts[-1]}"
    if operator := operator_of(mangled):
        return "::".join((*parts, f"operator{operator}"))
    complete = parts and (text[at : at + 1] in ("E", "I") if nested else at <= len(text))
    return "::".join(parts).encode("latin-1").decode("utf-8", "replace") if complete else mangled


def operator_of(mangled: str) -> str:
    """The operator that a function overloads, such as ``*``; nothing for other functions."""
    text = mangled.encode().decode("latin-1")
    parts, at = _parts(text) if mangled.startswith("_Z") else ([], 0)
    alone = mangled.startswith("_ZN") or parts in ([], ["std"])  # and no name in front of its parameters
    found = _OPERATOR.match(text, at) if alone else None
    return _OPERATORS[found[1]] if found is not None and at else ""


def _parts(text: str) -> tuple[list[str], int]:
    """The names that a mangled one begins with, and where they end."""
    nested = text.startswith("_ZN")
    at = 3 if nested else 2
    while nested and text[at : at + 1] in tuple("rVKRO"):
        at += 1
    parts: list[str] = []
    if text.startswith("St", at):
        parts.append("std")
        at += 2
    while match := _SOURCE_NAME.match(text, at):
        start, end = match.end(), match.end() + int(match[1])
        name = text[start:end]
        if len(name) < int(match[1]):
            return [], at
        parts.append("(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name)
        at = end
        if not nested:
            break
    return parts, at


def kernel_of(stub: str) -> str:
    """The kernel that a stub on the host launches, as the device's side calls it; the name itself if it is no stub."""

    def shorter(match: re.Match[str]) -> str:
        return str(int(match[1]) - len("__device_stub__")) if match[1] else ""

    return _STUB.sub(shorter, stub, count=1)
