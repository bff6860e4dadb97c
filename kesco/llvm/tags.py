"""What clang's tags for type-based alias analysis say of a load or store: the type that the source accesses there.

LLVM's own types do not tell: it loads a pointer, too, where the source reads a union that holds an address as an
integer. There is no tag where the compiler is told that a program does not keep to the rule (``-fno-strict-aliasing``).
"""

from __future__ import annotations

import re

from kesco.llvm.module import Module
from kesco.llvm.values import Instruction

_TAG = re.compile(r"!\{!\d+, !(\d+), i64 ")
_MEMBER = re.compile(r"i64 \d+, i64 \d+, !(\d+)")
_NAME = re.compile(r'!\{!"([^"]*)", ')
_POINTER = re.compile(r"any pointer|vtable pointer|p\d+ .*")
_NUMBERS = ("bool", "short", "int", "float", "double", "long double")


def is_pointer(module: Module, access: Instruction) -> bool:
    """Whether the source itself says that what is accessed is a pointer."""
    return _POINTER.fullmatch(_accessed(module, access)) is not None


def is_number(module: Module, access: Instruction) -> bool:
    """Whether it is a number of a type in which nobody keeps an address: so no pointer is accessed ([basic.lval])."""
    return _accessed(module, access) in _NUMBERS


def is_of_members(copy: Instruction) -> bool:
    """Whether the source copies a class there, member by member, and not just bytes."""
    return any(name == "tbaa.struct" for name, _ in copy.metadata)


def is_of_numbers(module: Module, copy: Instruction) -> bool:
    """Whether all members of the class that the source copies there are such numbers."""
    node = module.node(next((number for name, number in copy.metadata if name == "tbaa.struct"), -1))
    members = [_type(module, int(number)) for number in _MEMBER.findall(node)]
    return bool(members) and all(one in _NUMBERS for one in members)


def _accessed(module: Module, access: Instruction) -> str:
    """The type's name, as clang has it; nothing where it does not tell."""
    return _type(module, next((number for name, number in access.metadata if name == "tbaa"), -1))


def _type(module: Module, tag_number: int) -> str:
    """What a tag stands for."""
    tag = _TAG.match(module.node(tag_number))
    name = _NAME.match(module.node(int(tag[1]))) if tag is not None else None
    return name[1] if name is not None else ""
