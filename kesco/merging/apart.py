"""A merged text taken apart into its tasks again, for another merge: ``apart(text)`` → `Whole`, or None.

In: any text. Out: what `together.written` was given, where the text is one that it writes, byte for byte but for what
stands in the tasks' own parts; None for every other text, which is a program like any other. It is apart from
`together` because it reads what that one writes.

A task keeps its place among those that it was merged with: its priority is first that of the merged program, and then
the one that it has within it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kesco.merging.specs import Spec, unlike
from kesco.merging.wrap import Wrapped

_FIRST = "// ---- kesco merge: what the tasks share"
_HEADER = re.compile(r"^#if __has_include\(<[^>\n]+>\)\n#include <([^>\n]+)>\n#endif$", re.MULTILINE)
_TASK = re.compile(
    r"^// ---- kesco merge: task (?P<name>\w+), priority (?P<label>[\d/]+), from (?P<path>[^\n]*)\n"
    r"(?:#pragma push_macro\(\"\w+\"\)\n#undef \w+\n#define \w+ kesco_\w+\n)+"
    r"(?P<macros>(?:#pragma push_macro\(\"\w+\"\)\n)*)#pragma pack\(push\)\n#pragma pack\(\)\n"
    r"namespace kesco_(?P=name) \{\n(?P<text>.*?)\n\}  // namespace kesco_(?P=name)\n#pragma pack\(pop\)$",
    re.MULTILINE | re.DOTALL,
)
_MACRO = re.compile(r'push_macro\("(\w+)"\)')
_MAIN = '#line 1 "kesco_merged_main"'

Write = Callable[[Sequence[Spec], Sequence[Wrapped], bool, bool], bytes]


@dataclass(frozen=True, slots=True)
class Whole:
    """The tasks of a merged text, by what they are named there; whether it asks for more work queues."""

    specs: tuple[Spec, ...]
    parts: tuple[Wrapped, ...]
    asks: bool

    def under(self, outer: Spec, taken: set[str]) -> tuple[Spec, ...]:
        """Its tasks as those of a program in another merge, with names that nobody else has there."""
        found = []
        for one in self.specs:
            name = unlike(one.name, taken)
            taken.add(name)
            found.append(Spec(one.path, outer.priority, name, one.inside, one.label))
        return tuple(found)


def apart(text: bytes, write: Write) -> Whole | None:
    """The tasks, where `write` gives this very text for them."""
    decoded = text.decode("utf-8", "surrogateescape")
    if not decoded.startswith(_FIRST):
        return None
    tasks = list(_TASK.finditer(decoded))
    head, main = decoded[: tasks[0].start()] if tasks else "", decoded[decoded.rfind(_MAIN) :]
    headers = tuple(_HEADER.findall(head))
    specs, parts = [], []
    for one in tasks:
        rank = re.search(rf"kesco_{one['name']}::main, count, values\); \}}, (\d+), ", main)
        if rank is None:
            return None
        priority, _, within = one["label"].partition("/")
        specs.append(Spec(one["path"], int(priority), one["name"], int(rank[1]), within))
        parts.append(Wrapped(one["text"], tuple(_MACRO.findall(one["macros"])), headers))
    for one_thread in (False, True):
        for asks in (False, True):
            if specs and write(specs, parts, one_thread, asks) == text:
                return Whole(tuple(specs), tuple(parts), asks)
    return None
