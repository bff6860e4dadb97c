"""How compile time grows with the number of launches.

Writes programs of 200, 500, 1000 and 2000 launches, compiles each a few times, prints where the time goes and what 2000
launches cost in terms of 200. Two shapes: one straight line over many buffers, and the same spread over four functions.

    python scripts/growth.py [--sizes 200 500] [--repeat 3] [--shape line] [--profile] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kesco.options import Options
from kesco.pipeline import Compilation, compile_file

SIZES = (200, 500, 1000, 2000)
STAGES = ("toolchain", "program", "effects", "regions", "functions", "text", "verified")
KERNELS = """\
__global__ void make(float* out, float by) { out[threadIdx.x] = by; }
__global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }
__global__ void blur(const float* in, float* out) { out[threadIdx.x] = in[threadIdx.x] * 0.5f; }
__global__ void blend(const float* a, const float* b, float* c) { c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
__global__ void reduce(const float* x, float* sum) { atomicAdd(sum, x[threadIdx.x]); }
"""


def launches(count: int, buffers: list[str], drawn: random.Random) -> Iterator[str]:
    """A pipeline: most launches read what was written lately, some an older buffer; each tenth is a reduction."""
    recent = list(buffers[:4])
    for number in range(count):
        out = buffers[(number * 7 + drawn.randrange(3)) % len(buffers)]
        a, b = drawn.choice(recent), drawn.choice(recent if drawn.random() < 0.8 else buffers)
        kind = number % 10
        if kind == 9:
            yield f"reduce<<<64, 256>>>({a}, {out});"
        elif kind == 0:
            yield f"make<<<64, 256>>>({out}, {number}.0f);"
        elif kind in (3, 6):
            yield f"scale<<<64, 256>>>({a}, 0.5f);"
        elif kind % 2:
            yield f"blur<<<64, 256>>>({a}, {out});"
        else:
            yield f"blend<<<64, 256>>>({a}, {b}, {out});"
        recent = [*recent[1:], out]


def function(head: str, count: int, seed: int, tail: str) -> str:
    """One function with its own buffers, a twentieth as many as launches."""
    buffers = [f"b{n}" for n in range(max(8, count // 20))]
    lines = [f"float *{', *'.join(buffers)};", *(f"cudaMalloc(&{one}, 65536);" for one in buffers)]
    lines += launches(count, buffers, random.Random(seed))
    lines += ["cudaDeviceSynchronize();", *(f"cudaFree({one});" for one in buffers), tail]
    return "\n".join([head, *(f"  {line}" for line in lines if line), "}"])


def source(shape: str, count: int) -> str:
    """The text of a program."""
    if shape == "line":
        return KERNELS + "\n" + function("int main() {", count, 1, "return 0;") + "\n"
    parts = [function(f"static void part{n}() {{", count // 4, n, "") for n in range(4)]
    main = "int main() {\n" + "".join(f"  part{n}();\n" for n in range(4)) + "  return 0;\n}\n"
    return "\n\n".join([KERNELS, *parts, main])


def compile_once(path: Path) -> tuple[dict[str, float], Compilation]:
    """Seconds spent up to each stage's value since the one before, and the outcome."""
    spent: dict[str, float] = {}
    last = time.perf_counter()

    def observe(name: str, value: object) -> None:
        nonlocal last
        now = time.perf_counter()
        spent[name], last = spent.get(name, 0.0) + now - last, now

    result = compile_file(str(path), Options(), observe)
    observe("verified", None)
    return spent, result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="N", help="compiles of each program; medians are shown"
    )
    parser.add_argument("--shape", choices=("line", "functions"), action="append", help="default: both")
    parser.add_argument("--profile", action="store_true", help="profile the largest program instead")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the programs there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kesco-growth-") as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for shape in given.shape or ("line", "functions"):
            paths = {}
            for size in given.sizes:
                paths[size] = folder / f"{shape}{size}.cu"
                paths[size].write_text(source(shape, size))
            if given.profile:
                profile(paths[max(given.sizes)])
            else:
                table(shape, paths, given.repeat)


def table(shape: str, paths: dict[int, Path], repeat: int) -> None:
    """Medians, a line a size; the programs take turns, so that a busy moment does not hit one of them alone."""
    compile_once(paths[min(paths)])  # imports and the file system's cache
    found: dict[int, list[dict[str, float]]] = {size: [] for size in paths}
    about: dict[int, str] = {}
    for _ in range(repeat):
        for size, path in paths.items():
            spent, result = compile_once(path)
            found[size].append(spent)
            done = [one for one in result.functions if one.rewritten]
            about[size] = (
                f"{max((f.schedule.streams for f in done), default=1):>7} {sum(len(f.plan.waits) for f in done):>6}"
            )
    write(f"shape: {shape}; milliseconds, median of {repeat}")
    write(f"{'launches':>8} {'streams':>7} {'waits':>6} " + " ".join(f"{one:>9}" for one in (*STAGES, "total")))
    totals = {}
    for size, runs in found.items():
        totals[size] = statistics.median(sum(one.values()) for one in runs)
        medians = [statistics.median(one.get(stage, 0.0) for one in runs) for stage in STAGES]
        write(f"{size:>8} {about[size]} " + " ".join(f"{value * 1000:>9.0f}" for value in (*medians, totals[size])))
    small, large = min(totals), max(totals)
    write(f"{large} launches take {totals[large] / totals[small]:.1f} times what {small} take\n")


def profile(path: Path) -> None:
    """Where the time of one compilation goes, by function."""
    profiler = cProfile.Profile()
    profiler.enable()
    compile_once(path)
    profiler.disable()
    write(f"{path.name}:")
    for order in ("tottime", "cumulative"):
        pstats.Stats(profiler, stream=sys.stdout).sort_stats(order).print_stats(25)


def write(line: str) -> None:
    """One line, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
