"""How much a kernel does, by its instructions: loops count, and what is called."""

from __future__ import annotations

import pytest

from kesco.analysis.device_work import TRIPS, device_work

LINE = "define ptx_kernel void @line(ptr %0) {\n  %2 = load float, ptr %0\n  store float %2, ptr %0\n  ret void\n}\n"
LOOP = """
define dso_local ptx_kernel void @loop(ptr %0) {
entry:
  br label %3

3:                                                ; preds = %3, %entry
  %4 = load float, ptr %0
  br i1 %5, label %3, label %6

6:
  ret void
}
"""
NESTED = """
define ptx_kernel void @"nested"(ptr %0) {
  br label %a
a:
  br label %b
b:
  %x = call float @"deep $"(float 1.0)
  br i1 %c, label %b, label %d
d:
  br i1 %c, label %a, label %e
e:
  ret void
}
define internal float @"deep $"(float %0) {
  %2 = call float @outside(float %0)
  %3 = call float @again(float %0)
  ret float %2
}
define float @again(float %0) {
  %2 = call float @"deep $"(float %0)
  ret float %2
}
declare float @outside(float)
"""


def test_a_straight_line() -> None:
    assert device_work(LINE) == {"line": 4}


def test_a_loop_counts_for_its_trips() -> None:
    assert device_work(LOOP) == {"loop": 1 + 1 + 2 * TRIPS + 1}


def test_loops_in_loops_and_calls() -> None:
    found = device_work(NESTED)
    deep = found["deep $"]
    assert deep == 1 + 3 + 1  # with what is not here; not with what calls it back
    assert found["nested"] == 1 + 1 + 1 * TRIPS + 2 * TRIPS**2 + 1 * TRIPS + 1 + deep * TRIPS**2


@pytest.mark.parametrize("text", ["", "declare void @f()\n", "; define @x(\n"])
def test_nothing_is_defined(text: str) -> None:
    assert device_work(text) == {}
