"""Whether the library's streams run code of the program's: ``streams_act(program)``.

In: a parsed file. Out: whether it has a buffer or a facet of its own, or registers a function with a stream. Apart from
the calls, as no call tells: the library was given these long before, and calls them when anything is written or read.
"""

from __future__ import annotations

import re

from kesco.ir import program as ir

_OF_STREAMS = re.compile(  # the virtual functions of buffers and facets
    r"overflow|underflow|uflow|sync|xsputn|xsgetn|pbackfail|seekoff|seekpos|setbuf|showmanyc|imbue|do_\w+"
)


def streams_act(program: ir.Program) -> bool:
    """Whether what is written to a stream, or read from one, may run a function of the program's."""
    if any(one.virtual and _OF_STREAMS.fullmatch(one.name.rpartition("::")[2]) for one in program.functions):
        return True
    calls = (n for one in program.functions for n in ir.walk(one.body) if isinstance(n, ir.Call) and n.standard)
    return any(one.name.endswith("::register_callback") for one in calls)
