"""What becomes of the copies and prefetches of the eight workloads."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from integration.compiled import read_host_side

from kesco.check import Run, observe, prepare, record
from kesco.errors import InputError
from kesco.ir.flow import SiteKind
from kesco.ir.transfers import Pages
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain.model import Toolchain
from tests.taken import one_in

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"

# Streams, events, waits. Inputs are copied, or prefetched by hand (with -DPREFETCH), within the function.
COUNTS = {
    ("vec", "pinned"): (2, 1, 1),
    ("vec", "managed"): (2, 1, 1),
    ("bs", "pinned"): (10, 0, 0),
    ("bs", "managed"): (10, 0, 0),
    ("img", "pinned"): (4, 5, 6),
    ("img", "managed"): (4, 5, 6),
    ("ml", "pinned"): (3, 3, 3),
    ("ml", "managed"): (3, 3, 3),
    ("hits", "pinned"): (2, 6, 6),
    ("hits", "managed"): (2, 2, 2),
    ("dl", "pinned"): (3, 2, 2),
    ("dl", "managed"): (3, 2, 2),
    ("m1", "pinned"): (7, 12, 16),
    ("m1", "managed"): (7, 10, 10),
    ("m2", "pinned"): (13, 20, 38),
    ("m2", "managed"): (13, 17, 17),
}

# The same with prefetches put in, and how many.
INSERTED = {
    "vec": (2, 1, 1, 3),
    "bs": (10, 0, 0, 10),
    "img": (4, 5, 6, 6),
    "ml": (3, 3, 3, 6),
    "hits": (2, 2, 2, 8),
    "dl": (3, 2, 2, 8),
    "m1": (7, 10, 10, 21),
    "m2": (13, 17, 17, 21),
}

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.mark.parametrize(("name", "style"), one_in(3, COUNTS))
def test_transfers_of_the_workloads(name: str, style: str) -> None:
    flags = ("-DPREFETCH",) if style == "managed" else ()
    done = compile_file(str(WORKLOADS / name / f"{style}.cu"), Options(flags=flags))
    (main,) = (one for one in done.functions if one.rewritten)
    assert (main.schedule.streams, len(main.plan.events), len(main.plan.waits)) == COUNTS[name, style]
    indices = re.findall(r"kesco->\w+\[([^]]*)\]", done.text.decode())
    assert indices
    assert [index for index in indices if "?" in index] == []


@pytest.mark.parametrize("name", one_in(2, INSERTED))
def test_prefetches_put_into_the_workloads(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    done = compile_file(str(WORKLOADS / name / "managed.cu"), Options(prefetch=True))
    (main,) = (one for one in done.functions if one.rewritten)
    ways = Counter(site.label.partition("#")[0] for site in main.region.sites if site.added)
    assert (main.schedule.streams, len(main.plan.events), len(main.plan.waits), ways["prefetch"]) == INSERTED[name]
    zeroes = sorted(s.label for s in main.region.sites if s.kind is SiteKind.MEMSET and s.zeroes >= 0)
    ours = ["auth_norm", "auth_row", "hub_norm", "hub_row"] if name == "hits" else []
    assert zeroes == [f"zero of {one}" for one in ours]
    assert done.text.count(b"cudaMemsetAsync(") - (WORKLOADS / name / "managed.cu").read_bytes().count(
        b"cudaMemsetAsync("
    ) == len(ours)
    assert {*ways} - {"prefetch"} == ({"cudaDeviceSynchronize"} if ours else set())  # the host's wait for the zeros
    (tmp_path / "output.cu").write_bytes(done.text)
    finished = read_host_side(toolchain, tmp_path / "output.cu", f"-I{WORKLOADS / name}")
    assert finished.returncode == 0, finished.stderr
    assert "warning" not in finished.stderr, finished.stderr


@pytest.mark.thorough
def test_first_kernel_of_hits_waits_for_as_many_prefetches_as_by_hand(tmp_path: Path) -> None:
    """And each allocation is prefetched once in a repetition, not in each trip of its inner loop."""
    done = compile_file(str(WORKLOADS / "hits/managed.cu"), Options(prefetch=True))
    (main,) = (one for one in done.functions if one.rewritten)
    assert Counter(one.only for one in main.prefetches) == {"": 4, "inner == 0": 4}
    (tmp_path / "output.cu").write_bytes(done.text)
    ours = _issued(tmp_path / "output.cu", (f"-I{WORKLOADS / 'hits'}",), tmp_path / "ours")
    assert ours.replace("|", "") == "PPPPKPPPPKKKKKMMMMKKKKKKMMMMKKKKKKMMMM" * 2
    assert len(re.findall(r"MMMM\|", ours)) == 2  # the host waits behind the inner loop
    by_hand = _issued(WORKLOADS / "hits/async.cu", ("-DPREFETCH",), tmp_path / "by_hand")
    assert re.sub("[M|]", "", by_hand) == re.sub("[M|]", "", ours)


def _issued(program: Path, flags: tuple[str, ...], folder: Path) -> str:
    """What HITS issues in two repetitions of three trips: prefetches, kernels, memsets, and waits for all."""
    folder.mkdir()
    prepared = prepare(str(program), (), Options(flags=flags), folder)
    arguments = ("--n", "40000", "--iters", "2", "--inner", "3", "--no-check")
    _, trace = record(prepared, Run(arguments, limit=60, watch=False))
    assert trace is not None
    letters = {"Prefetched": "P", "Launched": "K", "Copied": "M", "Synchronized": "|"}
    return "".join(letters.get(type(event).__name__, "") for event in trace.events)


BOTH_WAYS = """\
__global__ void step(float* x, const float* w, long n) { for (long i = 0; i < n; ++i) x[i] += w[i]; }
static float sum(const float* p, long count) { float s = 0; for (long i = 0; i < count; ++i) s += p[i]; return s; }
int main() {
  const long n = 40000;
  float *a, *b, *w, s = 0;
  cudaMallocManaged(&a, n * sizeof(float)); cudaMallocManaged(&b, n * sizeof(float));
  cudaMallocManaged(&w, n * sizeof(float));
  for (long i = 0; i < n; ++i) a[i] = b[i] = w[i] = 1;
  for (int it = 0; it < 3; ++it) {
    step<<<1, 32>>>(a, w, n);
    step<<<1, 32>>>(b, w, n);
    cudaDeviceSynchronize();
    s += sum(a, n) + sum(b, n) + sum(w, n);
  }
  cudaFree(w);
  return s < 0;
}
"""


def test_prefetches_both_ways_and_advice_are_taken_in_a_dry_run(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "both.cu").write_text(BOTH_WAYS)
    done = compile_file(str(tmp_path / "both.cu"), Options(prefetch=True))
    (main,) = (one for one in done.functions if one.rewritten)
    assert Counter(one.pages for one in main.prefetches) == {Pages.DEVICE: 2, Pages.HOST: 2, Pages.BOTH: 1}
    text = done.text.decode()
    told = text.replace("  if (error != cudaSuccess) cudaGetLastError();", "  if (error != cudaSuccess) std::abort();")
    assert told != text
    (tmp_path / "output.cu").write_text(told)
    prepared = prepare(str(tmp_path / "output.cu"), (), Options(), tmp_path)
    assert observe(prepared, Run((), limit=30)).diagnostics == ()
    (tmp_path / "wrong").mkdir()
    wrong = told.replace("KescoStreams::large)) return;", "KescoStreams::large)) return;\n  size += 9999;")
    assert wrong != told
    (tmp_path / "wrong.cu").write_text(wrong)
    prepared = prepare(str(tmp_path / "wrong.cu"), (), Options(), tmp_path / "wrong")
    with pytest.raises(InputError, match="SIGABRT"):  # beyond the end: refused, which this program does not hide
        observe(prepared, Run((), limit=30))


def test_waits_of_unrolled_copies_are_written_in_step_with_the_counter() -> None:
    done = compile_file(str(WORKLOADS / "m2/pinned.cu"), Options())
    waits = re.findall(r"^ *(.*)cudaStreamWaitEvent\((.*), kesco->done\[(.*)\], 0\);", done.text.decode(), re.MULTILINE)
    assert ("", "kesco->stream[2 * k + 1]", "k + 3") in waits
    assert ("if (k >= 1) ", "kesco->stream[2 * k + 1]", "1") in waits
    assert len(waits) == 10
