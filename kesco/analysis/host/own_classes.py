"""Classes and functions of the program that the library calls by itself: ``OwnClasses(module)`` tells of them.

In: the module. Out: three answers, each found when it is asked for. Apart from the calls, as it is asked of the types
that the module names, not of what is called.

1. Who catches an exception may call what it says. 2. What is written to a stream, or read from one, goes through its
buffer, the facets of its locale and what was registered with it, which were given to the library long before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from kesco.llvm.module import Module
from kesco.llvm.values import symbols_in

_BUILT_IN = re.compile(r"_ZTI(?:PK?)?[a-z]")  # types without functions
_DESTRUCTOR = re.compile(r"D[012]Ev$")
_LIBRARYS = ("_ZTISt", "_ZTINSt")
_OF_STREAMS = re.compile(r"_ZTIN?St.*(?:buf|facet|ctype|codecvt|num_|numpunct|money|time_|collate|messages)")


def _is_librarys(name: str) -> bool:
    """Whether what a table of virtual functions names is a type, a destructor, or the library's."""
    return name.startswith(("_ZTI", "_ZNSt", "_ZNKSt")) or _DESTRUCTOR.search(name) is not None


@dataclass
class OwnClasses:
    """Answers for one module."""

    module: Module

    @cached_property
    def exceptions(self) -> bool:
        """Whether there is a class of exceptions with functions of its own, which who catches it may call."""
        module, own = self.module, self._types
        used = {n for one in module.defined() for n in module.mentioned(one)} if own else set()  # thrown, or caught
        made = [n for n in own if n in used or any(base.startswith("_ZTISt") for base in self._named_by(n))]
        tables = [self._named_by(n.replace("_ZTI", "_ZTV", 1)) for n in made]
        return not all(t and all(map(_is_librarys, t)) for t in tables)

    @cached_property
    def streams(self) -> bool:
        """Whether streams of the library may run code of the program's: a buffer, a facet or what is registered."""
        derived = any(_OF_STREAMS.match(base) for one in self._types for base in self._named_by(one))
        return derived or any("17register_callback" in name for name in self.module.names())

    @cached_property
    def new(self) -> bool:
        """Whether the program has a ``new`` or ``delete`` of its own, which the library's classes then call."""
        return any(map(self.module.has_body, ("_Znwm", "_ZdlPv", "_ZdlPvm")))

    @cached_property
    def _types(self) -> list[str]:
        names = [n for n in self.module.variables() if n.startswith("_ZTI") and not _BUILT_IN.fullmatch(n)]
        return [n for n in names if not n.startswith(_LIBRARYS)]

    def _named_by(self, variable: str) -> list[str]:
        """What the initial value of a variable names; none if it is not known."""
        one = self.module.variable(variable)
        return [] if one is None or one.initial is None else list(symbols_in(one.initial))
