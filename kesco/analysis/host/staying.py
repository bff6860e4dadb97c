"""Functions of the program that have nothing to do with the device: ``stays_on_host(engine, own, name)``.

In: a function by its name. Out: whether all that it runs is code of this file, or of libraries of which it is known
what they do: then it gives the device nothing and waits for nothing, whatever it does with the host's memory. Apart
from the calls because only names are asked: it is about functions that take too long to be followed.

What it refuses: whoever starts threads that may go on behind it, ends the process, lets something happen later, calls
through a pointer, calls back what a library knows of, makes addresses of numbers, or is written in assembly.
"""

from __future__ import annotations

import re

from kesco.analysis.host.engine import Engine
from kesco.analysis.host.own_classes import OwnClasses
from kesco.frontend.api_table import host_call

_HIDES = re.compile(r" asm |\binttoptr\b|\b(?:call|invoke)\b[^@]* %[-\w.$]+\(")
"""Assembly, addresses that were numbers, calls through pointers."""
_STOPS = frozenset(("abort", "_ZSt9terminatev", "__assert_fail"))
"""What ends the process where the program has gone wrong, and runs nothing before."""


def stays_on_host(engine: Engine, own: OwnClasses, name: str) -> bool:
    """Whether nothing that a function runs can have to do with the device, or go on when it has come back."""
    if engine.leads_to_cuda(name) or own.new or own.streams or own.exceptions:
        return False
    return all(_is_harmless(engine, one) for one in engine.named_in(name))


def _is_harmless(engine: Engine, name: str) -> bool:
    module = engine.module
    if name in engine.weak:
        return False
    if module.has_body(name):
        return not any(map(_HIDES.search, module.body(name)))
    if module.variable(name) is not None or name.startswith("llvm."):
        return True
    model, host = engine.models.of(name), host_call(name)
    goes_on = host is not None and host.kind in ("thread", "exit") and name not in _STOPS
    if name.startswith("__kmpc_"):  # threads that have ended when their region has
        goes_on = "task" in name or "teams" in name
    elif "thread" in name.lower() or "async" in name.lower():
        goes_on = True
    later = model is not None and (model.keeps or model.later is not None)
    return engine.models.knows(name) and not (goes_on or later)
