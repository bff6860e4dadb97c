"""What ``KescoOn`` and ``kesco_current()`` do as they run: the prologue, for the host alone, on a late runtime."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from unit.late_runtime import built, said

from kesco.emit.prologue import Parts

DRIVER = r"""
#include <stdexcept>
Stream* const nobody = nullptr;
std::string name(cudaStream_t one, Stream& a, Stream& b) { return one == &a ? "a" : one == &b ? "b" : one ? "?" : "0"; }
Stream a, b;
std::string here() { return name(kesco_current(), a, b); }
int call(std::string* where) { *where += here(); return 1; }
int throws(std::string* where) { *where += here(); throw std::runtime_error("x"); }
int down(int depth, std::string* where) {
  *where += here();
  return depth > 0 ? down(depth - 1, where) : 0;
}
int outer(std::string* where) {  // an operation of its caller that gives its own call another stream
  *where += here();
  (void)KescoOn(&b), call(where);
  *where += here();
  return 1;
}
void twice(Stream& stream, int* order, int* next) {  // two operations on the stream of whoever calls
  for (int i = 0; i < 2; ++i)
    kesco_current()->push([=] { order[*next] = i; ++*next; });
  (void)stream;
}
struct Asks {  // goes at the end of the expression in which it was made, before what was made earlier
  std::string* where;
  ~Asks() { *where += here(); }
};
void with(const Asks&) {}
int main() {
  streams = {&a, &b};
  std::string where;
  call(&where);
  const int value = ((void)KescoOn(&a), call(&where));
  call(&where);
  std::printf("expression %s %d\n", where.c_str(), value);
  where.clear();
  try {
    (void)KescoOn(&a), throws(&where);
  } catch (const std::runtime_error&) {
    call(&where);
  }
  std::printf("exception %s\n", where.c_str());
  where.clear();
  (void)KescoOn(&a), outer(&where);
  call(&where);
  std::printf("nested %s\n", where.c_str());
  where.clear();
  (void)KescoOn(&b), down(2, &where);
  (void)KescoOn(&a), down(1, &where);
  std::printf("recursion %s\n", where.c_str());
  where.clear();
  (void)KescoOn(&a), with(Asks{&where});
  call(&where);
  std::printf("temporary %s\n", where.c_str());
  where.clear();
  std::string other;
  std::atomic<int> turn{0};
  const auto wait = [&](int until) { while (turn < until) std::this_thread::yield(); };
  const auto asks = [&](std::string* found) { call(found); ++turn; wait(4); call(found); };
  std::thread thread([&] { call(&other); ++turn; wait(2); (void)KescoOn(&b), asks(&other); call(&other); });
  wait(1);
  ++turn;
  (void)KescoOn(&a), asks(&where);
  call(&where);
  thread.join();
  std::printf("threads %s %s\n", where.c_str(), other.c_str());
  int order[2] = {}, next = 0, others[2] = {}, more = 0;
  (void)KescoOn(&a), twice(a, order, &next);
  (void)KescoOn(&b), twice(b, others, &more);
  b.drain();
  std::printf("two callers %d %d", next, more);
  a.drain();
  std::printf(", then %d %d%d%d%d\n", next, order[0], order[1], others[0], others[1]);
  std::printf("in the end %s\n", here().c_str());
}
"""
SAID = [
    "expression 0a0 1",
    "exception a0",
    "nested aba0",
    "recursion bbbaa",
    "temporary a0",
    "threads aa0 0bb0",
    "two callers 0 2, then 2 0101",
    "in the end 0",
]
FORGETS = ("~KescoOn() { kesco_current() = before_; }", "~KescoOn() {}")
SHARED = ("static thread_local cudaStream_t current", "static cudaStream_t current")
RESETS = ("kesco_current() = before_; }", "kesco_current() = nullptr; }")


def run(folder: Path, *changes: tuple[str, str]) -> list[str]:
    return said(built(folder, DRIVER, changes, parts=Parts(copies=True, calls=True)))


def test_a_call_is_given_a_stream_until_its_expression_ends(tmp_path: Path) -> None:
    assert run(tmp_path) == SAID


@pytest.mark.parametrize(
    ("change", "wrong"),
    [(FORGETS, "exception"), (FORGETS, "expression"), (SHARED, "threads"), (RESETS, "nested")],
    ids=["forgets-exception", "forgets-expression", "shared", "resets"],
)
def test_another_prologue_is_found_out(tmp_path: Path, change: tuple[str, str], wrong: str) -> None:
    try:
        lines = run(tmp_path, change)
    except (AssertionError, subprocess.TimeoutExpired):
        return
    assert [line for line in lines if line.startswith(wrong)] != [line for line in SAID if line.startswith(wrong)]
