"""The table of CUDA's libraries → C++ of functions that only tell what they touch, for the dry run's runtime.

In: ``frontend/resources/library_api.toml``. Out: the text of one file, to be compiled with `dryrun/libraries.cpp`.

1. Each function of the table has as many parameters as the table says, each in the place of an integer or a pointer.
   What is passed as a floating-point number goes elsewhere, and stands behind all that is asked for.
2. Names count with the ending that the headers' macros lead to (``_v2``), too.
3. What fills in variables of the host, and what descriptors are about, is left out: the first would have to be right,
   and what is touched through the second is not known there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).resolve().parent.parent / "frontend" / "resources" / "library_api.toml"
_LEFT_OUT = frozenset(("out", "holds", "reads_held", "writes_held"))
_HEAD = """#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
namespace dryrun {
int library_creates(void *handle, std::size_t size);
int library_sets_stream(std::uintptr_t handle, cudaStream_t stream);
int library_works(const char *name, std::uintptr_t handle, const char *modes, const std::uintptr_t *addresses);
}
using A = std::uintptr_t;
"""


def library_functions() -> str:
    """The text."""
    groups = tomllib.loads(TABLE.read_text("utf-8"))["group"]
    made = [group for group in groups if _LEFT_OUT.isdisjoint(group)]
    lines = [line for group in made for name in _names(group) for line in _function(name, group)]
    return _HEAD + "\n".join(lines) + "\n"


def _names(group: dict[str, Any]) -> Iterator[str]:
    for name in group["names"]:
        yield from (name.replace("?", letter) for letter in group.get("types", "?")) if "?" in name else (name,)


def _function(name: str, group: dict[str, Any]) -> Iterator[str]:
    given = ", ".join(f"A a{i}" for i in range(group["parameters"]))
    body = "{ return 0; }"
    if group["kind"] == "create":
        body = f"{{ return dryrun::library_creates(reinterpret_cast<void *>(a0), {group.get('size', 8)}); }}"
    elif group["kind"] == "set_stream":
        body = "{ return dryrun::library_sets_stream(a0, reinterpret_cast<cudaStream_t>(a1)); }"
    elif group["kind"] == "work":
        touched = [("r", i) for key in ("reads", "scalars") for i in group.get(key, ())]
        touched += [("w", i) for key in ("writes", "results") for i in group.get(key, ())]
        modes, addresses = "".join(mode for mode, _ in touched), ", ".join(f"a{i}" for _, i in touched)
        works = f'dryrun::library_works("{name}", a0, "{modes}", addresses)'
        body = f"{{ const A addresses[] = {{{addresses or 0}}}; return {works}; }}"
    for one in (name, f"{name}_v2"):
        yield f'extern "C" int {one}({given}) {body}'
