"""Random loops in which the host uses results: ``text_of(seed)``, a program that runs (`property.native`).

In: a number. Out: the text of one file with three functions, each with one such loop, and their names. What a turn
does, and what uses its results, is drawn from statements that go well together and from those that do not.
"""

from __future__ import annotations

import random
import re

from property.hosts import HEAD

_HOST = ("h0", "h1", "vec.data()", "pin", "man", "grid[i % 2]")
_DEVICE = ("d0", "d1", "man")
_GIVEN = (
    "for (int j = 0; j < 32; ++j) {H}[j] = float(i * 3 + j);",
    "cudaMemcpy({D}, {H}, 128, cudaMemcpyHostToDevice);",
    "cudaMemcpyAsync({D}, {H}, 128, cudaMemcpyHostToDevice);",
    "k_rw<<<1, 32>>>({D}, {E});",
    "k_x<<<1, 32>>>({D});",
    "k_rx<<<1, 32>>>({D}, {E});",
    "if (i == 3) continue;",
    "if (i == 5) break;",
    "if (total > 1e9f) break;",
    "scale += 1.0f;",
    "p = i % 2 ? h0 : h1;",
    "note(i);",
    "float last = {H}[1]; (void)last;",
    "state.seen += i;",
    "std::swap(d0, d1);",
    "std::vector<float> spare(32); spare[2] = i; total += spare[1];",
)
_WAIT = (
    "cudaMemcpy({H}, {D}, 128, cudaMemcpyDeviceToHost);",
    "cudaDeviceSynchronize();",
    "CHECK(cudaMemcpy({H}, {D}, 128, cudaMemcpyDeviceToHost));",
    "cudaMemcpyAsync({H}, {D}, 128, cudaMemcpyDeviceToHost); cudaDeviceSynchronize();",
)
_USED = (
    "for (int j = 0; j < 32; ++j) total += {H}[j];",
    "for (int j = 0; j < 32; ++j) {H}[j] = {H}[j] * 0.5f + i;",
    "total += sum({H}) * scale;",
    'std::printf("%d %.3f\\n", i, {H}[2]);',
    "for (int j = 0; j < 32; ++j) state.best = state.best < {H}[j] ? {H}[j] : state.best;",
    "found.push_back({H}[3] + i);",
    "counted += i + int(scale);",
    "for (int j = 0; j < 32; ++j) p[j] += 1.0f;",
    "note(int(found.size()));",
    "total += look[5]; for (int j = 0; j < 4; ++j) total += look[j];",
    "for (int j = 0; j < 32; ++j) first += {H}[j];",
    "for (float one : mine) total += one;",
    "for (int j = 0; j < at.number; ++j) total += at.weight;",
    "std::for_each(found.begin(), found.end(), [&](float& one) { one += i + total; });",
)
_NEEDS = {
    "look": "const float* look = {H};",
    "first": "float& first = {H}[0];",
    "mine": "std::vector<float> mine(32); cudaMemcpy(mine.data(), {D}, 128, cudaMemcpyDeviceToHost);",
    "at.": "Plain at = {i, {H}[4]};",
}
"""What declares a name that a statement uses."""
_BODY = """
static void {name}(int turns) {{
  float h0[32] = {{}}, h1[32] = {{}}, grid[2][32] = {{}};
  std::vector<float> vec(32), found;
  float *d0, *d1, *pin, *man{p};
  cudaMalloc(&d0, 128); cudaMalloc(&d1, 128); cudaMallocHost(&pin, 128); cudaMallocManaged(&man, 128);
  cudaMemset(d0, 0, 128); cudaMemset(d1, 0, 128);
  for (int j = 0; j < 32; ++j) pin[j] = man[j] = 1.0f;
  float total = 0.0f, scale = 1.0f;
  int counted = 0;
  State state;
  {head} {{
    {body}
  }}
  cudaDeviceSynchronize();
  std::printf("%.3f %.3f %d %d %.3f %d\\n", total, scale, counted, state.seen, state.best, int(found.size()));
  for (float one : found) std::printf("%.3f ", one);
  for (int j = 0; j < 32; j += 7) std::printf("%.3f %.3f %.3f %.3f %.3f ", h0[j], h1[j], vec[j], pin[j], man[j]);
  std::printf("%.3f %.3f\\n", grid[0][1], grid[1][2]);
  float left[32];
  cudaMemcpy(left, d0, 128, cudaMemcpyDeviceToHost); show(left);
  cudaMemcpy(left, d1, 128, cudaMemcpyDeviceToHost); show(left);
}}
"""
_TOP = """
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(x) do { if ((x) != cudaSuccess) { std::printf("failed\\n"); std::exit(1); } } while (0)
struct State { int seen = 0; float best = -1.0f; };
struct Plain { int number; float weight; };
static int notes = 0;
static void note(int what) { notes = notes * 7 + what; }
static float sum(const float* of) { float found = 0; for (int j = 0; j < 32; ++j) found += of[j]; return found; }
"""
_HEADS = ("for (int i = 0; i < turns; ++i)", "for (int i = 0; i < 6 && total < 1e9f; i += 2)", "for (int i : order)")


def text_of(seed: int) -> tuple[str, list[str]]:
    """The text for a number, and the functions in it that are called from `main`."""
    drawn = random.Random(seed)
    names = [f"loop{n}" for n in range(3)]
    functions = "".join(_function(drawn, name) for name in names)
    calls = "".join(f"  {name}(turns);\n" for name in names)
    order = "static const std::vector<int> order = {4, 1, 3, 7, 2};\n"
    head, last = (
        "int main(int argc, char**) {\n  const int turns = argc * 3 + 2;\n",
        '  std::printf("%d\\n", notes);\n}\n',
    )
    main = head + calls + last
    return _TOP + HEAD + order + functions + main, names


def _function(drawn: random.Random, name: str) -> str:
    def filled(text: str) -> str:
        one, other = drawn.sample(_DEVICE, 2)
        host = drawn.choice(_HOST[:3] if drawn.random() < 0.7 else _HOST)
        return text.replace("{H}", host).replace("{D}", one).replace("{E}", other)

    used = drawn.sample(_USED, drawn.choice((1, 1, 2, 3)))
    needed = [text for name, text in _NEEDS.items() if any(name in one for one in used)]
    given = [*drawn.sample(_GIVEN, drawn.choice((0, 1, 2, 3))), *needed]
    drawn.shuffle(given)
    launches = drawn.sample(_GIVEN[3:6], drawn.choice((1, 2)))
    more = [one for one in drawn.sample(_GIVEN, drawn.choice((0, 0, 0, 1))) if one not in given]
    body = [*given, *launches, *more, *drawn.sample(_WAIT, drawn.choice((1, 1, 2))), *used]
    text = "\n    ".join(map(filled, body))
    pointer = ", *p = h0" if re.search(r"\bp\b", text) else ""
    return _BODY.format(name=name, head=drawn.choice(_HEADS), body=text, p=pointer)
