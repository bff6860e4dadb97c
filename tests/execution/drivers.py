"""A `main` for a module that has none: it calls each function that others may call, with memory that it makes.

In: the text of a module. Out: the text with a `main`, and the functions. Which one is called, and with what, is said by
the number of the program's arguments: function times `WAYS` plus way.

1. A pointer gets managed memory, which host and device may use, a structure by value memory of the host; a number is
small, or one. 2. First every pointer gets memory of its own, full of zeros; then full of pointers to other memory, for
tables and lists; then all pointers get the same memory, which is what a function's check of its pointers is for, but
for those that the author promised to be apart (``__restrict__``).
"""

from __future__ import annotations

import re
from collections.abc import Collection

WAYS = 3
_DEFINED = re.compile(
    r'^define (?!internal|private|available_externally)[^\n]*?@("[^"]+"|[\w.$-]+)\((.*)\{$', re.MULTILINE
)
_BLOCK = """
define internal ptr @kesco.block(ptr %full, i1 %plain) {
  %slot = alloca ptr
  br i1 %plain, label %host, label %both
host:
  %got = call ptr @malloc(i64 262144)
  store ptr %got, ptr %slot
  br label %filled
both:
  %done = call i32 @cudaMallocManaged(ptr %slot, i64 262144, i32 1)
  br label %filled
filled:
  %made = load ptr, ptr %slot
  br label %loop
loop:
  %i = phi i64 [ 0, %filled ], [ %next, %loop ]
  %at = getelementptr ptr, ptr %made, i64 %i
  store ptr %full, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 32768
  br i1 %more, label %loop, label %end
end:
  ret ptr %made
}
"""
_NUMBERS = {"float": "1.0", "double": "1.0", "i1": "1", "i8": "1"}


def driven(text: str, leading: Collection[str]) -> tuple[str, tuple[str, ...]]:
    """The module with a `main`, and the functions that it calls: of those that lead to calls of CUDA."""
    functions = []
    for name, rest in _DEFINED.findall(text):
        parameters = _parameters(rest)
        library = re.match(r"_ZN?K?(St|9__gnu_cxx)|__|_GLOBAL__|\"", name)
        if parameters is not None and name in leading and not library:
            functions.append((name, parameters))
    cases, bodies = [], []
    for number, (name, parameters) in enumerate(functions):
        for way in range(WAYS):
            label = f"case.{number}.{way}"
            cases.append(f"    i32 {1 + number * WAYS + way}, label %{label}")
            bodies += [f"{label}:", *_call(label, name, parameters, way), "  ret i32 0"]
    needed = {
        "cudaMallocManaged": "declare i32 @cudaMallocManaged(ptr, i64, i32)",
        "malloc": "declare ptr @malloc(i64)",
    }
    missing = "".join(line + "\n" for name, line in needed.items() if f"@{name}(" not in text)
    main = ["define i32 @main(i32 %count, ptr %given) {", "  switch i32 %count, label %none [", *cases, "  ]"]
    main += [*bodies, "none:", "  ret i32 0", "}", ""]
    return text + missing + _BLOCK + "\n".join(main), tuple(name for name, _ in functions)


def _parameters(rest: str) -> list[str] | None:
    """The types of a list of parameters, with what tells how they are passed; None where it cannot be called."""
    found, depth, start = [], 0, 0
    for at, one in enumerate(rest):
        depth += (one in "(<{[") - (one in ")>}]")
        if depth < 0 or (one == "," and depth == 0):
            found.append(rest[start:at].strip())
            start = at + 1
        if depth < 0:
            break
    return None if "..." in found else [one for one in found if one]


def _call(label: str, name: str, parameters: list[str], way: int) -> list[str]:
    lines: list[str] = []
    given: list[str] = []

    def block(full: str, plain: bool = False) -> str:
        made = f"%{label}.{len(lines)}"
        lines.append(f"  {made} = call ptr @kesco.block(ptr {full}, i1 {int(plain)})")
        return made

    shared = block(block("null")) if way == 2 else ""
    for parameter in parameters:
        if parameter.startswith("ptr"):
            by_value = re.search(r"(?:byval|sret)\([^()]*\)(?: align \d+)?", parameter)
            full = "null" if way == 0 else shared or block("null")
            one = shared if not by_value and "noalias" not in parameter else ""
            given.append(f"ptr {by_value[0] if by_value else ''} {one or block(full, by_value is not None)}")
        else:
            kind = re.match(r"[<{\[].*[>}\]]|\S+", parameter)
            word = kind[0] if kind else ""
            number = _NUMBERS.get(word, "8" if word.startswith("i") else "zeroinitializer")
            given.append(f"{word} {number}")
    return [*lines, f"  call void @{name}({', '.join(given)})"]
