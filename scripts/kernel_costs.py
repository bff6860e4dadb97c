"""What Nsight Compute measured of each kernel → the costs that the model of a GPU takes.

Input: files with a line ``=== workload/size/block`` before each CSV table of ncu (``--csv --page raw``) for one
pass of the serial program, with the metrics of `METRICS`. Output: TOML as `kesco.bench.costs` reads it.

    python scripts/kernel_costs.py ncu.txt > workloads/costs.toml
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MANIFEST = Path(__file__).resolve().parent.parent / "workloads/manifest.toml"
METRICS = {
    "gpu__time_duration.sum": "microseconds",
    "launch__grid_size": "blocks",
    "launch__block_size": "threads",
    "launch__registers_per_thread": "registers",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "memory",
}
SHARED = ("launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic")
UNITS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6, "second": 1e6}
BYTES = {"byte": 1, "Kbyte": 1000, "byte/block": 1, "Kbyte/block": 1000}


def tables(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    """The settings with their tables."""
    for part in text.split("=== ")[1:]:
        head, _, rest = part.partition("\n")
        rows = [row for row in csv.reader(rest.splitlines()) if len(row) > 5]
        if len(rows) > 2:
            yield head.strip(), rows


def number(text: str) -> float:
    """A number as ncu writes it."""
    return float(text.replace(",", ""))


def launches(rows: list[list[str]]) -> Iterator[tuple[str, dict[str, float]]]:
    """Each launch's kernel name and facts, in order."""
    names, units, *data = rows
    for row in data:
        facts: dict[str, float] = {"shared": 0.0}
        kernel = ""
        for name, unit, value in zip(names, units, row, strict=True):
            if name == "Kernel Name":
                kernel = value.partition("(")[0].partition("<")[0]
            elif name in SHARED:
                facts["shared"] += number(value) * BYTES[unit]
            elif name in METRICS:
                scale = UNITS[unit] if name.startswith("gpu__time") else 0.01 if unit == "%" else 1.0
                facts[METRICS[name]] = number(value) * scale
        yield kernel, facts


def main() -> None:
    """Print the TOML."""
    known = tomllib.loads(MANIFEST.read_text("utf-8"))
    write(
        "# Measured with Nsight Compute on one NVIDIA H200, one kernel at a time; scripts/kernel_costs.py wrote this."
    )
    for path in sys.argv[1:]:
        for setting, rows in tables(Path(path).read_text("utf-8")):
            labels = known[setting.partition("/")[0]]["kernels"]
            total = Counter(label.partition("#")[0] for label in labels)
            seen: Counter[str] = Counter()
            write(f'\n["{setting}"]')
            for kernel, facts in launches(rows):
                seen[kernel] += 1
                if seen[kernel] > total[kernel]:
                    continue  # the next round of a loop
                label = f"{kernel}#{seen[kernel]}" if total[kernel] > 1 else kernel
                values = ", ".join(f"{name} = {show(name, value)}" for name, value in sorted(facts.items()))
                write(f'"{label}" = {{ {values} }}')


def show(name: str, value: float) -> str:
    """A value in TOML."""
    return f"{value:.3f}" if name in ("microseconds", "sm", "memory") else str(int(value))


def write(line: str) -> None:
    """One line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
