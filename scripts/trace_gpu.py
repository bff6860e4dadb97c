"""Trace the workloads on a GPU, serial and as kesco wrote them: the measured timelines, and whether they can be right.

    kesco bench vec img m2 --styles device,whole --build-only .scratch/built    # where clang is
    python3 scripts/trace_gpu.py .scratch/built --out FOLDER                    # where the GPU is

Needs python3 with click, jinja2 and rich (`pip install --target .scratch/site click jinja2 rich`, and
PYTHONPATH=.scratch/site), g++, and CUDA with CUPTI; no clang. For each pair of programs it writes both traces, a page,
and the numbers of `kesco compare`, and checks what must hold of any right trace:

1. both programs give the serial one's result; 2. both have the same kernels, each as often; 3. of the serial one never
two operations overlap; 4. what a trace calls busy is not longer than its span, and no stream is busier than the device;
5. the file is what `read` gives back.

Ends with 1 if one of them does not hold. It takes a run's times as they are: `kesco bench` compares properly.
"""
# ruff: noqa: T201, D103

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kesco.ir.activity import Activities  # noqa: E402
from kesco.tracing.overlap import Numbers, numbers  # noqa: E402
from kesco.tracing.perfetto import read, to_json  # noqa: E402

_ALMOST = 1.001  # times are kept in nanoseconds


def kesco(*words: str) -> subprocess.CompletedProcess[str]:
    """The command, as a user gives it."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "kesco", *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, env={**os.environ, "PYTHONPATH": path}
    )


def result_of(output: str) -> float | None:
    """What a workload says that came out, without its times."""
    found = re.search(r"^result (\S+)$", output, re.MULTILINE)
    return float(found[1]) if found else None


def kernels(run: Activities) -> Counter[str]:
    return Counter(one.name for one in run.work if one.kind == "kernel")


def wrong(before: Activities, after: Activities, results: list[float | None], files: list[Path]) -> list[str]:
    """What does not hold of a pair of traces."""
    found = []
    one, other = numbers(before), numbers(after)
    if None in results or not math.isclose(results[0] or 0.0, results[1] or 0.0, rel_tol=1e-5):  # sums by atomics
        found.append(f"results differ: {results}")
    if kernels(before) != kernels(after):
        found.append(f"other kernels: {kernels(before)} and {kernels(after)}")
    if one.overlap > _ALMOST:
        found.append(f"the serial program overlaps itself: {one.overlap}")
    for name, run in (("serial", one), ("kesco", other)):
        if run.busy > run.span * _ALMOST or any(stream.busy > run.busy * _ALMOST for stream in run.streams):
            found.append(f"{name}: busier than possible: {run}")
    for run, file in zip((before, after), files, strict=True):
        if to_json(run) != file.read_text("utf-8"):
            found.append(f"{file}: not what is read of it")
    return found


def line(name: str, one: Numbers, other: Numbers) -> str:
    ratio = one.span / other.span if other.span else 0.0
    hidden = f"{100 * other.hidden / other.copies:.0f} %" if other.copies else "–"
    return (
        f"{name}: span {one.span:.0f} → {other.span:.0f} µs ({ratio:.2f}), overlap {one.overlap:.2f} → "
        f"{other.overlap:.2f}, gaps {one.gaps} → {other.gaps}, copies beside a kernel {hidden}, "
        f"{len(one.streams)} → {len(other.streams)} streams"
    )


def pair(folder: Path, name: str, arguments: list[str], out: Path) -> list[str]:
    """Trace one pair and write everything about it; what was wrong."""
    files, results = [], []
    for program in ("serial", "kesco"):
        file = out / f"{name}-{program}.json"
        done = kesco("trace", "-o", str(file), "--", str(folder / f"{name}-{program}"), *arguments)
        print(done.stderr, end="")
        if done.returncode or not file.is_file():
            return [f"{program}: kesco trace ended with {done.returncode}"]
        files.append(file)
        results.append(result_of(done.stdout))
    page = out / f"{name}.html"
    done = kesco("compare", *map(str, files), "--html", str(page), "--json")
    (out / f"{name}-compare.json").write_text(done.stdout)
    (out / f"{name}-compare.txt").write_text(kesco("compare", *map(str, files)).stdout)
    if done.returncode or not page.is_file():
        return [f"kesco compare ended with {done.returncode}: {done.stderr}"]
    before, after = (read(file) for file in files)
    print(line(name, numbers(before), numbers(after)))
    return wrong(before, after, results, files)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("built", type=Path, help="a folder that 'kesco bench --build-only' made")
    parser.add_argument("--out", type=Path, default=Path("traces"))
    parser.add_argument("--n", help="the problem's size (default: each program's own)")
    parser.add_argument("--iters", default="3")
    parser.add_argument("--block", default="256")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    programs: list[dict[str, Any]] = json.loads((options.built / "build.json").read_text())["programs"]
    names = sorted({f"{one['workload']}-{one['style']}" for one in programs})
    arguments = ["--iters", options.iters, "--block", options.block, *(["--n", options.n] if options.n else [])]
    bad = {name: problems for name in names if (problems := pair(options.built, name, arguments, options.out))}
    for name, problems in bad.items():
        print(f"{name}: WRONG", *problems, sep="\n  ")
    print(f"{len(names) - len(bad)} of {len(names)} pairs hold")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
