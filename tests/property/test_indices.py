"""Footprints against what kernels touch: random index arithmetic, run for some threads of launches of every size.

Nothing else would notice a footprint that is too small, since the proof reads kernels with the same code.
`KESCO_INDICES=N` draws N kernels instead of the default, `KESCO_INDICES_FROM=K` starts at another one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from property.indices import DEVICE, HOST, MAIN, PARAMETERS, draw

from kesco.analysis.effects import kernel_effects
from kesco.ir.effects import DIMENSIONS
from kesco.ir.poly import Poly
from kesco.options import Options
from kesco.session import device_ir_of, toolchain_for

WANTED = int(os.environ.get("KESCO_INDICES", "40"))
FIRST = int(os.environ.get("KESCO_INDICES_FROM", "0"))
COMPILER = shutil.which("g++") or shutil.which("clang++")

pytestmark = pytest.mark.usefixtures("toolchain")


def value(poly: Poly, arguments: list[int], sizes: dict[str, int]) -> int:
    """What a footprint's polynomial is in a launch."""
    total = 0
    for symbols, factor in poly.terms:
        for symbol in symbols:
            if symbol in DIMENSIONS:
                factor *= sizes[symbol.name]
            else:
                kind = re.fullmatch(r"([su])(\d+) arg(\d+)", symbol.name)
                assert kind is not None
                bits = int(kind[2])
                number = arguments[int(kind[3])] % (1 << bits)
                factor *= number - (1 << bits) if kind[1] == "s" and number >> (bits - 1) else number
        total += factor
    return total


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
def test_nothing_is_touched_outside_of_a_footprint(tmp_path: Path) -> None:
    bodies = [draw(seed) for seed in range(FIRST, FIRST + WANTED)]
    declared = ", ".join(f"{kind} {name}" for name, kind in PARAMETERS)
    kernels = tmp_path / "kernels.cu"
    lines = [f"__global__ void k{k}(float* x, {declared}) {{ {body} }}" for k, body in enumerate(bodies)]
    kernels.write_text(DEVICE + "\n".join(lines))
    followed = ", ".join(f"I<{kind}> {name}" for name, kind in PARAMETERS)
    lines = [f"static void k{k}(At<4> x, {followed}) {{ {body} }}" for k, body in enumerate(bodies)]
    table = f"static Kernel kernels[] = {{{', '.join(f'k{k}' for k in range(len(bodies)))}}};"
    host = tmp_path / "host.cpp"
    host.write_text("\n".join([HOST, *lines, table, MAIN]))
    options = Options(flags=("-w",))
    ir = device_ir_of(toolchain_for(options), str(kernels), options)
    effects = {one.display: one for one in kernel_effects(ir)}
    subprocess.run([str(COMPILER), "-O0", "-w", "-std=c++17", str(host), "-o", str(tmp_path / "host")], check=True)
    runs = subprocess.run([str(tmp_path / "host")], capture_output=True, text=True, check=True).stdout
    compared = 0
    for line in runs.splitlines():
        k, n, u, m, z, w, h, gx, gy, bx, by, low, high = map(int, line.split())
        fields = [dict(p.fields)[0] for p in effects[f"k{k}"].params if p.index == 0]
        assert fields, f"touches something: {bodies[k]} {line}"
        footprint = fields[0].footprint
        sizes = {"gridDim.x": gx, "gridDim.y": gy, "gridDim.z": 1, "blockDim.x": bx, "blockDim.y": by, "blockDim.z": 1}
        given = [0, n, u, m, z, w, h]
        if footprint is None or any(value(poly, given, sizes) > most for poly, most in footprint.fits):
            continue
        compared += 1
        ends = value(footprint.bytes.low, given, sizes), value(footprint.bytes.high, given, sizes)
        assert ends[0] <= low and high <= ends[1], f"[{low}, {high}) of {footprint.bytes}: {bodies[k]} {line}"
    assert compared > 5 * WANTED
