"""Random host programs that keep device pointers in arrays, structs and vectors, move them about, and work on them.

In: a number. Out: the text of a function that fills a container in one of the ways that people write, lets elements
trade places, be copied and be shared, and launches kernels for them in loops whose trips are known at run time only.
Whether two turns meet is decided by what the program does as it runs: `kesco check` sees it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

HEAD = """#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>
__global__ void set(float* x, int m) { int i = threadIdx.x; if (i < m) x[i] = x[i] * 2.0f + 1.0f; }
__global__ void add(float* y, const float* x, int m) { int i = threadIdx.x; if (i < m) y[i] += x[i]; }
struct Pair { float* x; float* y; };
struct Set { Pair of[2]; float* z; };
static float* make(int m) {
  float* p = nullptr;
  if (cudaMalloc(&p, m * sizeof(float)) != cudaSuccess) exit(1);
  return p;
}
static float* cached(int m) {
  static float* one;
  if (!one) cudaMalloc(&one, m * sizeof(float));
  return one;
}
static float* sometimes(float* before, int i, int m) {
  float* p = before;
  if (i % 3 == 0) cudaMalloc(&p, m * sizeof(float));
  return p;
}
static void both(float* x, float* y, int m) {
  set<<<1, 32>>>(x, m);
  add<<<1, 32>>>(y, x, m);
}
void each(Pair* p, int m) { if (p->x) set<<<1, 32>>>(p->x, m); if (p->y) set<<<1, 32>>>(p->y, m); }
static float* kept[64];
static void keep(float* x, int i, int m) { set<<<1, 32>>>(x, m); kept[i] = x; }
static void shared(float* x, int m) { if (kept[0]) add<<<1, 32>>>(kept[0], x, m); }
static void more(std::vector<float*>& v, int m) { v.push_back(make(m)); }
static void twice(std::vector<float*>& v, float* p) { v.push_back(p); v.push_back(p); }
"""


@dataclass(frozen=True)
class _Container:
    """How one is declared for a name; how its element of a number is written; whether it is a vector, which grows."""

    declared: str
    element: str
    vector: bool = False
    grows: bool = False
    pairs: bool = False

    def at(self, name: str, index: str) -> str:
        return self.element.format(name=name, i=index)


_CONTAINERS = (
    _Container("float* {name}[64];", "{name}[{i}]"),
    _Container("float** {name} = (float**)malloc(64 * sizeof(float*));", "{name}[{i}]"),
    _Container("float** {name} = new float*[n + 1];", "{name}[{i}]"),
    _Container("std::vector<float*> {name}(n + 1);", "{name}[{i}]", vector=True),
    _Container("std::vector<float*> {name};", "{name}[{i}]", vector=True, grows=True),
    _Container("std::vector<Pair> {name}(n + 1);", "{name}[{i}].x", pairs=True),
    _Container("std::vector<Pair> {name};", "{name}[{i}].y", grows=True, pairs=True),
    _Container("Pair {name}[64];", "{name}[{i}].x"),
    _Container("Pair {name}[64];", "{name}[{i}].y"),
    _Container("Set {name}[64];", "{name}[{i}].z"),
    _Container("Set {name}[64];", "{name}[{i}].of[1].x"),
)
_INDICES = ("n - 1 - i", "i / 2", "(i + 3) % n", "i % 2")


def program(seeds: range) -> str:
    """One program that runs the functions of these numbers, each by itself."""
    calls = "".join(f"  called = case_{one};\n  called(n, 16);\n" for one in seeds)
    declared = "  int n = argc > 1 ? atoi(argv[1]) : 7;\n  void (*volatile called)(int, int);\n"
    return f"{HEAD}{''.join(map(draw, seeds))}int main(int argc, char** argv) {{\n{declared}{calls}}}\n"


def draw(seed: int) -> str:
    """The text of one function, ``void case_SEED(int n, int m)``."""
    chance = random.Random(seed)
    return _Case(chance, f"case_{seed}").text()


class _Case:
    def __init__(self, chance: random.Random, name: str) -> None:
        self.chance, self.name = chance, name
        self.a, self.b = (chance.choice(_CONTAINERS) for _ in range(2))
        self.hostile = chance.random() < 0.5

    def text(self) -> str:
        lines = [self.a.declared.format(name="a"), self.b.declared.format(name="b")]
        lines += self.filled("a", self.a) + self.filled("b", self.b)
        for _ in range(self.chance.choice((0, 1, 1, 2)) if self.hostile else 0):
            lines += self.chance.choice(self.shuffles())
        lines += self.work()
        lines += ["cudaDeviceSynchronize();"]
        if self.hostile and self.chance.random() < 0.5:
            lines += [*self.chance.choice(self.shuffles()), *self.work(), "cudaDeviceSynchronize();"]
        return f"void {self.name}(int n, int m) {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"

    def filled(self, name: str, one: _Container) -> list[str]:
        at = one.at(name, "i")
        if one.grows and one.pairs:
            ways = [
                f"Pair q; cudaMalloc(&q.x, m * sizeof(float)); q.y = make(m); {name}.push_back(q);",
                f"{name}.push_back({{make(m), make(m)}});",
                f"Pair q = {{make(m), nullptr}}; q.y = make(m); {name}.push_back(q);",
                f"Pair q; q.x = q.y = make(m); {name}.push_back(q);",
                f"{name}.push_back(Pair{{make(m), nullptr}}); {name}.back().y = i % 2 ? {name}.front().x : make(m);",
                f"{name}.push_back({name}.empty() ? Pair{{make(m), make(m)}} : {name}.back());",
                f"Pair q = {{make(m), make(m)}}; {name}.push_back(q); if (i == 2) {name}.push_back(q);",
            ]
            extra = f"{name}.push_back({self.chance.choice((f'{name}[0]', f'{name}.front()'))});"
        elif one.grows:
            ways = [
                f"float* p; cudaMalloc(&p, m * sizeof(float)); {name}.push_back(p);",
                f"{name}.push_back(make(m));",
                f"more({name}, m);",
                f"float* p = make(m); {name}.push_back(p); if (i == 2) {name}.push_back(p);",
                f"{name}.push_back(nullptr); cudaMalloc(&{name}.back(), m * sizeof(float));",
                f"{name}.push_back(i % 3 ? make(m) : {name}.empty() ? make(m) : {name}.back());",
                f"twice({name}, make(m));",
                f"{name}.push_back(cached(m));",
                f"float* p = make(m); for (int j = 0; j < 2; ++j) {name}.push_back(p);",
                f"if (i == 1) {{ {name}.push_back({name}[0]); continue; }} {name}.push_back(make(m));",
                f"{name}.push_back(sometimes({name}.empty() ? make(m) : {name}.back(), i, m));",
            ]
            extra = f"{name}.push_back({self.chance.choice(('make(m)', f'{name}[0]', f'{name}.front()'))});"
        else:
            ways = [
                f"cudaMalloc(&{at}, m * sizeof(float));",
                f"float* p; cudaMalloc(&p, m * sizeof(float)); {at} = p;",
                f"{at} = make(m);",
                f"float* p = make(m); {at} = p; if (i > 0 && i % 3 == 0) {one.at(name, 'i - 1')} = p;",
                f"{at} = i % 3 ? make(m) : i ? {one.at(name, 'i - 1')} : make(m);",
                f"float* p = make(m); cudaMemset(p, 0, m * sizeof(float)); {at} = p;",
                f"{at} = cached(m);",
                f"float* p = make(m); for (int j = 0; j < 2; ++j) {one.at(name, '(i + j) % n')} = p;",
                f"{at} = sometimes(i ? {one.at(name, 'i - 1')} : make(m), i, m);",
                f"if (i == 1) {{ {at} = {one.at(name, '0')}; continue; }} {at} = make(m);",
                f"float* p = make(m); {at} = p; p = make(m); {one.at(name, 'n - 1 - i')} = p;",
            ]
            extra = f"{one.at(name, 'n')} = {self.chance.choice(('make(m)', one.at(name, '0')))};"
        way = self.chance.choice(ways if self.hostile and self.chance.random() < 0.5 else ways[:3])
        if self.hostile and self.chance.random() < 0.15:  # one for all, or what the turn before has made
            if self.chance.random() < 0.5:
                last = self.stored(name, one).replace("_one", "_last")
                body = f"{last} {name}_last = make(m);"
                return [f"float* {name}_last = make(m);", f"for (int i = 0; i <= n; ++i) {{ {body} }}"]
            return [f"float* {name}_one = make(m);", f"for (int i = 0; i <= n; ++i) {self.stored(name, one)}"]
        return [
            f"for (int i = 0; i < n; ++i) {{ {way} }}",
            *([extra] if self.hostile and self.chance.random() < 0.2 else []),
        ]

    def stored(self, name: str, one: _Container) -> str:
        held = f"Pair{{{name}_one, {name}_one}}" if one.pairs else f"{name}_one"
        return f"{name}.push_back({held});" if one.grows else f"{one.at(name, 'i')} = {name}_one;"

    def shuffles(self) -> list[list[str]]:
        a, b, chance = self.a, self.b, self.chance
        other = chance.choice(_INDICES)
        ai, bi = a.at("a", "i"), b.at("b", "i")
        ends = a.at("a", "0"), a.at("a", "n - 1")
        every = "for (int i = 0; i < n; ++i)"
        found = [
            [f"{every} std::swap({ai}, {a.at('a', other)});"],
            [f"{every} {{ float* t = {ai}; {ai} = {bi}; {bi} = t; }}"],
            [f"{every} {bi} = {a.at('a', other)};"],
            [f"{ends[0]} = {a.at('a', '1')};"],
            [f"{{ float* t = {ends[0]}; {ends[0]} = {ends[1]}; {ends[1]} = t; }}"],
            [f"for (int i = 0; i + 1 < n; ++i) {ai} = {a.at('a', 'i + 1')};"],
            [f"float** q{chance.randrange(10**6)} = &{ends[0]};"],
        ]
        if (a.vector and b.vector) or (a.pairs and b.pairs):
            found += [["b = a;"], ["std::swap(a, b);"]]
        if a.pairs:
            found += [
                ["std::reverse(a.begin(), a.end());"],
                ["{ Pair t = a[0]; a[0] = a[1]; a[1] = t; }"],
                ["for (auto& p : a) std::swap(p.x, p.y);"],
                ["for (auto p : a) p.x = p.y = nullptr;"],
                ["for (auto& p : a) { if (!p.x) p.x = p.y; if (!p.y) p.y = p.x; }"],
                ["a.push_back(a.back());"],
            ]
        if a.vector:
            found += [
                ["std::reverse(a.begin(), a.end());"],
                ["a.pop_back(); a.push_back(a.front());"],
                ["a.insert(a.begin(), a.back());"],
                ["a.resize(n); a.push_back(a[0]);"],
                ["a.clear(); for (int i = 0; i <= n; ++i) more(a, m);"],
            ]
        if a.declared.startswith(("Pair", "Set")):
            found += [["for (int i = 1; i < n; ++i) a[i] = a[i - 1];"], ["a[1] = a[0];"]]
            if a.declared == b.declared:
                found += [["for (int i = 0; i < n; ++i) b[i] = a[i];"], ["std::swap(a[0], b[0]);"]]
        return found

    def work(self) -> list[str]:
        lines = []
        for _ in range(self.chance.choice((1, 1, 2))):
            odd = 0.3 if self.hostile else 0.05
            i, j = (self.chance.choice(_INDICES) if self.chance.random() < odd else "i" for _ in range(2))
            x, y = self.a.at("a", i), self.chance.choice((self.b.at("b", j), self.a.at("a", j)))
            launches = [f"set<<<1, 32>>>({x}, m);", f"add<<<1, 32>>>({y}, {x}, m);", f"cudaMemsetAsync({x}, 0, m);"]
            launches += [f"both({x}, {y}, m);", f"both({x}, {x}, m);", f"keep({x}, i, m);"]
            if self.a.pairs or self.a.declared.startswith("Pair"):
                launches.append(f"each(&a[{i}], m);")
            if self.hostile:
                launches += [f"shared({x}, m);", f"both({x}, {self.a.at('a', '0')}, m);"]
            chosen = self.chance.sample(launches, self.chance.choice((1, 1, 2)))
            if self.a.vector and self.chance.random() < 0.3:
                each = self.chance.choice(("float* p", "auto p", "auto& p", "float* const& p"))
                lines.append(f"for ({each} : a) set<<<1, 32>>>(p, m);")
            elif self.a.pairs and self.chance.random() < 0.3:
                which = self.a.element[-1]
                each = self.chance.choice(("Pair p", "auto& p", "const auto& p"))
                lines.append(f"for ({each} : a) if (p.{which}) set<<<1, 32>>>(p.{which}, m);")
            else:
                lines.append(f"for (int i = 0; i < n; ++i) {{ {' '.join(chosen)} }}")
        return lines
