"""Random programs that allocate, and what a run of one had in memory: its peak, and the values that it copied out.

Each function of a program allocates buffers of random sizes, works on them and frees them in any order, with other
memory, loops, waits, calls and ways out in between. What a kernel writes is a term of what it has read, so that a
value says how it came to be. Values are those of the order of the text; that nothing in it is unordered is for
``kesco check`` to say.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kesco.check import Run, prepare, record
from kesco.options import Options
from kesco.verify.races import find_races
from kesco.verify.trace import Allocated, Copied, Freed, Launched, Trace

HEAD = """#include <cuda_runtime.h>
#include <cstdlib>
__global__ void make(float* a, long n) { for (long i = threadIdx.x; i < n; i += 32) a[i] = i; }
__global__ void change(float* a, long n) { for (long i = threadIdx.x; i < n; i += 32) a[i] += 1; }
__global__ void mix(const float* a, long n, const float* b, long m, float* c, long k) {
  for (long i = threadIdx.x; i < k; i += 32) c[i] = a[i % n] + b[i % m];
}
#define CHECK(e) if ((e) != cudaSuccess) exit(1)
"""
PAGE = 1 << 21
EACH = 4
"""Functions of a program."""
_BUFFERS = "abcdefgh"


class _Draw:
    """One program, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.there: list[str] = []  # what holds values
        self.more = 0
        self.usual = [self.random.choice([4_000_000, 8_000_000]), 4_000_000]

    def size(self) -> str:
        if self.random.random() < 0.1:
            return str(self.random.choice([1 << 25, (1 << 25) + 4096]))
        factor = self.random.choice([800, *self.usual * 3, 2_000_000, 12_000_000])
        return f"(size_t)count * {factor} + {4 * self.random.choice([0, 0, self.random.randrange(5000)])}"

    def work(self, group: list[str], step: int) -> str:
        """One operation of a chain, which reads what the step before has written, and seldom something else."""
        new, rare = group[step], self.random.random()
        self.there.append(new)
        if step == 0 or rare < 0.1:
            return f"make<<<1, 32>>>({new}, {new}_bytes / 4);"
        if rare < 0.2:
            return f"CHECK(cudaMemset({new}, 0, {new}_bytes));"
        old = group[step - 1]
        other = self.random.choice([name for name in self.there if name != new]) if rare > 0.8 else old
        return f"mix<<<1, 32>>>({old}, {old}_bytes / 4, {other}, {other}_bytes / 4, {new}, {new}_bytes / 4);"

    def again(self, name: str) -> str:
        return f"change<<<1, 32>>>({name}, {name}_bytes / 4);"

    def other(self) -> str:
        """Memory that comes and goes by itself."""
        name, self.more = f"u{self.more}", self.more + 1
        size = f"(size_t)count * {self.random.choice([1000, 4_000_000, 40_000_000])}"
        return (
            f"float* {name}; CHECK(cudaMalloc(&{name}, {size})); make<<<1, 32>>>({name}, 100); CHECK(cudaFree({name}));"
        )

    def body(self, calls: str) -> str:
        """What a function does with two groups of buffers, which mostly have nothing to do with each other."""
        names = list(_BUFFERS[: self.random.randint(5, len(_BUFFERS))])
        sizes = "\n".join(f"  const size_t {name}_bytes = {self.size()};" for name in names)
        lines = [f"CHECK(cudaMalloc(&{name}, {name}_bytes));" for name in self.random.sample(names, len(names))]
        half = self.random.randint(2, len(names) - 2)
        groups = [names[:half], names[half:]]
        for step in range(max(map(len, groups))):
            for group in (one for one in groups if step < len(one)):
                lines.append(self.placed(self.work(group, step)))
                lines += [self.placed(self.again(group[step]))] * self.random.randint(0, 1)
            lines += self.rarity(calls)
        shown = sorted({group[-1] for group in groups})
        lines += [f"CHECK(cudaMemcpy(out, {name}, 256, cudaMemcpyDeviceToHost));" for name in shown]
        for name in self.random.sample(names, len(names)):
            lines.append(f"CHECK(cudaFree({name}));")
            rare = self.random.random()
            lines += [self.other()] if rare < 0.03 else ["if (count > 2) break;"] if rare < 0.04 else []
        pointers, inside = ", *".join(names), "\n".join(f"    {line}" for line in lines)
        return f"{sizes}\n  float *{pointers}, out[64];\n  for (int t = 0; t < count; ++t) {{\n{inside}\n  }}"

    def placed(self, work: str) -> str:
        """An operation, some in loops or branches."""
        if "CHECK" in work or self.random.random() < 0.85:
            return work
        return f"for (int i = 0; i < {self.random.choice(['count', '2'])}; ++i) {{ {work} }}"

    def rarity(self, calls: str) -> list[str]:
        """What else may stand between the operations."""
        rare = self.random.random()
        if rare < 0.06:
            return ["CHECK(cudaDeviceSynchronize());"]
        if rare < 0.11:
            return [self.other()]
        if rare < 0.14:
            return [self.random.choice(["if (count > 2) return 1;", "if (count > 2) continue;"])]
        if rare < 0.2 and self.there:
            return [f"CHECK(cudaMemcpy(out, {self.there[-1]}, 256, cudaMemcpyDeviceToHost));"]
        return [f"{calls}(count);"] if calls and rare > 0.8 else []


def draw(seed: int) -> str:
    """The text of several functions, some of which call the one before, and a `main` that calls one by its number."""
    functions, calls = "", ""
    for number in range(EACH):
        one = _Draw(seed * EACH + number)
        before = f"work{number - 1}" if number % 2 else ""
        functions += f"int work{number}(int count) {{\n{one.body(before)}\n  return 0;\n}}\n"
        calls += f"  if (atoi(argv[1]) == {number}) work{number}(atoi(argv[2]));\n"
    return f"{HEAD}{functions}int main(int argc, char** argv) {{\n{calls}  return 0;\n}}\n"


@dataclass
class Seen:
    """What a run had: the most bytes at a time, the same in the driver's pages, and the values that it copied out."""

    peak: int = 0
    pages: int = 0
    values: list[object] = field(default_factory=list)


def outcomes(text: str, folder: Path, runs: Iterable[tuple[str, ...]]) -> list[Seen]:
    """What a program had in each of its runs, given by their arguments; none of them has a race."""
    folder.mkdir()
    (folder / "program.cu").write_text(text)
    prepared = prepare(str(folder / "program.cu"), (), Options(), folder)
    found = []
    for arguments in runs:
        ran, trace = record(prepared, Run(arguments=arguments))
        assert ran.returncode == 0 and trace is not None, ran.said
        found.append(seen(trace))
        findings = find_races(trace.events, prepared.effects, prepared.steering, prepared.touches)
        assert not findings.races and not findings.stale, arguments
    return found


def seen(trace: Trace) -> Seen:
    """Follows a run in the order of the text."""
    found, live = Seen(), dict[int, int]()
    memory = _Values()
    for event in trace.events:
        if isinstance(event, Allocated) and event.kind == "d":
            live[event.base] = event.size
            memory.write(event.base, event.base + event.size, "nothing")
            found.peak = max(found.peak, sum(live.values()))
            found.pages = max(found.pages, _pages(live.values()))
        elif isinstance(event, Freed):
            live.pop(event.base, None)
        elif isinstance(event, Launched):
            _launched(memory, event)
        elif isinstance(event, Copied):
            _copied(memory, event, found)
    return found


def _pages(sizes: Iterable[int]) -> int:
    """Bytes in whole pages of 2 MiB; what is up to half of one shares pages."""
    every = list(sizes)
    small = sum(-(-size // 512) * 512 for size in every if size <= PAGE // 2)
    return (sum(-(-size // PAGE) for size in every if size > PAGE // 2) + -(-small // PAGE)) * PAGE


def _launched(memory: _Values, event: Launched) -> None:
    assert event.arguments is not None
    words = [int.from_bytes(one, "little") for one in event.arguments]
    ranges = [(low, low + 4 * n) for low, n in zip(words[::2], words[1::2], strict=True)]
    reads = ranges[:-1] if len(ranges) > 1 else ranges if "change" in event.name else []
    memory.write(*ranges[-1], hash((event.name, *(tuple(memory.read(*one)) for one in reads))))


def _copied(memory: _Values, event: Copied, found: Seen) -> None:
    if event.function.startswith("cudaMemset"):
        (to,) = event.ranges
        memory.write(to.low, to.high, "zeros")
        return
    source = next(one for one in event.ranges if not one.writes)
    found.values.append(tuple(memory.read(source.low, source.high)))


class _Values:
    """What is where: disjoint stretches of memory, each with the value that was written to all of it."""

    def __init__(self) -> None:
        self.parts: dict[int, tuple[int, int, object]] = {}  # begin → end, where its value begins, the value

    def write(self, low: int, high: int, value: object) -> None:
        for begin, (end, origin, old) in list(self.parts.items()):
            if begin < high and low < end:
                del self.parts[begin]
                if begin < low:
                    self.parts[begin] = (low, origin, old)
                if high < end:
                    self.parts[high] = (end, origin, old)
        self.parts[low] = (high, low, value)

    def read(self, low: int, high: int) -> list[tuple[int, int, object]]:
        """The values in a stretch, each with its place in the stretch and in what was written."""
        inside = sorted((b, e, o, v) for b, (e, o, v) in self.parts.items() if b < high and low < e)
        return [(max(b, low) - low, max(b, low) - o, v) for b, _, o, v in inside]
