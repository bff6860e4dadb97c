"""Calls of the library that only say where an object is run no code of the user's, unless pointers are objects too."""

from __future__ import annotations

from pathlib import Path

from kesco.ir import program as ir
from kesco.options import Options
from kesco.session import Session

PROGRAM = """
#include <memory>
#include <vector>
struct Thing { ~Thing() {} float* data; };
struct Fancy {
  Fancy(std::nullptr_t = nullptr) {}
  Fancy(const Fancy& other) : p(other.p) { ++copied; }
  Thing* operator->() const { return p; }
  explicit operator bool() const { return p != nullptr; }
  bool operator!=(std::nullptr_t) const { return p != nullptr; }
  Thing* p = nullptr;
  static int copied;
};
struct Ends { using pointer = Fancy; void operator()(Fancy) const {} };
__global__ void touch(float* x, float* y) { *x = *y; }
void plain(std::unique_ptr<Thing>& one, std::vector<Thing>& many) { touch<<<1, 1>>>(one->data, many[0].data); }
void fancy(std::unique_ptr<Thing, Ends>& one) { touch<<<1, 1>>>(one.get().p->data, nullptr); }
void clears(std::vector<Thing>& many) { many.clear(); }
"""


def test_only_plain_pointers_are_said_without_code(tmp_path: Path) -> None:
    path = tmp_path / "p.cu"
    path.write_text(PROGRAM)
    calls: dict[tuple[str, str], bool] = {}
    for function in Session(str(path), Options()).program.functions:
        for node in ir.walk(function.body):
            if isinstance(node, ir.Call) and node.standard:
                calls[function.name, node.name.rpartition("::")[2]] = node.runs or node.destroys
    assert calls["plain", "operator->"] is False
    assert calls["plain", "operator[]"] is False
    assert calls["fancy", "get"] is True
    assert calls["clears", "clear"] is True
