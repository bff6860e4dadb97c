"""On a GPU: each workload and what kesco makes of it compute the same, for several sizes, run after run.

The programs are built here by kesco and nvcc. A machine that has a GPU but no compilers takes them from elsewhere:
``python tests/gpu/test_workloads_gpu.py FOLDER`` builds them, and ``KESCO_GPU_BUILD=FOLDER`` names them to the tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "workloads"
MANIFEST = tomllib.loads((ROOT / "manifest.toml").read_text("utf-8"))
PROGRAMS = [(name, style) for name in MANIFEST for style in ("serial", "managed")]
RUNS = 20
VARYING = {"vec", "hits", "dl"}  # atomics add floats in any order: the last digits vary from run to run
SHAPES = (("--block", "32", "--grid", "16"), ("--block", "256", "--grid", "64"), ("--block", "1024", "--grid", "8"))

pytestmark = pytest.mark.gpu


def build(name: str, style: str, folder: Path) -> tuple[Path, Path]:
    """The serial and the concurrent program, compiled."""
    from kesco.options import Options
    from kesco.pipeline import compile_file
    from kesco.toolchain.compile import architectures
    from kesco.toolchain.discover import discover

    toolchain = discover()
    if toolchain.nvcc is None:
        pytest.skip("no nvcc found")
    source = ROOT / name / f"{style}.cu"
    emitted = folder / f"{name}_{style}_async.cu"
    emitted.write_bytes(compile_file(str(source), Options()).text)
    include = [part for one in toolchain.cuda_include for part in ("-isystem", str(one))]
    made = []
    for text, suffix in ((source, ""), (emitted, "_async")):
        made.append(folder / f"{name}_{style}{suffix}")
        flags = [f"-arch={architectures(toolchain)[0]}", "-std=c++17", "-O2", f"-I{source.parent}", *include]
        subprocess.run([str(toolchain.nvcc), *flags, str(text), "-o", str(made[-1])], check=True)
    return made[0], made[1]


@pytest.fixture(scope="module", params=PROGRAMS, ids="/".join)
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    name, style = request.param
    ready = os.environ.get("KESCO_GPU_BUILD")
    if ready:
        return name, Path(ready) / f"{name}_{style}", Path(ready) / f"{name}_{style}_async"
    return name, *build(name, style, tmp_path_factory.mktemp("gpu"))


def run(program: Path, *arguments: str, prefix: tuple[str, ...] = (), **environment: str) -> float:
    """The checksum of one run, which found its own result right where it looked."""
    done = subprocess.run(
        [*prefix, str(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=dict(os.environ) | environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^result (\S+)$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    return float(found[1])


def sizes(name: str) -> list[tuple[str, ...]]:
    """Small with the check, then larger ones in several shapes, each pipeline more than once."""
    small = MANIFEST[name]["small"]
    count = int(small[small.index("--n") + 1])
    larger = [(*shape, "--n", str(count * factor)) for shape, factor in zip(SHAPES, (1, 3, 7), strict=True)]
    return [(*small, "--iters", "2", "--check"), *((*one, "--iters", "3", "--no-check") for one in larger)]


@cache
def expected(program: Path, arguments: tuple[str, ...]) -> float:
    return run(program, *arguments)


def same(name: str, got: float, want: float) -> bool:
    return got == want if name not in VARYING else got == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("number", range(4))
def test_it_computes_the_same_run_after_run(programs: tuple[str, Path, Path], number: int) -> None:
    name, serial, concurrent = programs
    arguments = sizes(name)[number]
    want = expected(serial, arguments)
    got = [run(concurrent, *arguments) for _ in range(RUNS)]
    assert [one for one in got if not same(name, one, want)] == []


def test_one_stream_is_the_serial_program(programs: tuple[str, Path, Path]) -> None:
    name, serial, concurrent = programs
    arguments = sizes(name)[0]
    assert same(name, run(concurrent, *arguments, KESCO_STREAMS="1"), expected(serial, arguments))


def test_memcheck_is_clean(programs: tuple[str, Path, Path]) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("no compute-sanitizer found")
    name, _, concurrent = programs
    prefix = (sanitizer, "--tool", "memcheck", "--error-exitcode", "9")
    run(concurrent, *MANIFEST[name]["small"], prefix=prefix)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for one in PROGRAMS:
        build(*one, place)
