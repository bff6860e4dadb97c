"""How long the report's page takes to be made and to open in Chromium: the numbers of docs/report.md.

    python scripts/open_page.py            # the largest workload, and a program of 500 operations

Needs Chromium and the `browser` extra. Times are medians of `RUNS`, from the navigation to the second frame drawn.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.report.page import page

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
OPERATIONS, BUFFERS = 500, 60
_QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
_KERNEL = "__global__ void mix(const float* a, const float* b, float* to, int n) { if (n) to[0] = a[0] * b[0]; }"


def synthetic() -> str:
    """A program of `OPERATIONS` kernels, each on three of `BUFFERS` arrays."""
    draw = random.Random(1)
    lines = ["#include <cuda_runtime.h>", _KERNEL, "int main() {", "  const int n = 1 << 16;"]
    lines += [f"  float* x{i}; cudaMalloc(&x{i}, n * sizeof(float));" for i in range(BUFFERS)]
    for _ in range(OPERATIONS):
        a, b, to = draw.sample(range(BUFFERS), 3)
        lines.append(f"  mix<<<n / 256, 256>>>(x{a}, x{b}, x{to}, n);")
    return "\n".join([*lines, "  cudaDeviceSynchronize();", "  return 0;", "}", ""])


def seconds_to_open(browser: Any, file: Path) -> float:
    """The median time until a page is drawn."""
    times = []
    for _ in range(RUNS):
        tab = browser.new_page(viewport={"width": 1440, "height": 900})
        began = time.perf_counter()
        tab.goto(file.as_uri())
        tab.evaluate(_DRAWN)
        times.append(time.perf_counter() - began)
        tab.close()
    return statistics.median(times)


def main() -> None:
    """Print a line for each program."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        made = Path(name) / "synthetic.cu"
        made.write_text(synthetic())
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_QUIET, headless=True)
        for source in (ROOT / "workloads/m2/serial.cu", made):
            result = compile_file(str(source), Options(page=True))
            began = time.perf_counter()
            text = page(result)
            wrote = time.perf_counter() - began
            file = Path(name) / "page.html"
            file.write_text(text, "utf-8")
            operations = sum(len(one.dfg.graph) for one in result.functions)
            opened = seconds_to_open(browser, file)
            size = f"{operations} operations, {len(text) // 1000} kB"
            sys.stdout.write(f"{source.name}: {size}, made in {wrote:.2f} s, open in {opened:.2f} s\n")
        browser.close()


if __name__ == "__main__":
    main()
