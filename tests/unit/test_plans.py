"""The description of a plan: what makes it another one, and what does not; figures of other plans are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kesco.bench import mixes
from kesco.bench.figures import stale
from kesco.bench.mixes import Mix, Task
from kesco.bench.plans import described, together
from kesco.bench.regress import read
from kesco.emit.prologue import Parts, prologue

ROOT = Path(__file__).resolve().parents[2]
TEXT = """\
int main() {
  KescoStreams* kesco = &kesco_streams();
  CHECK(cudaMemcpy(x, h.data(), n, cudaMemcpyHostToDevice));
  for (int i = 0; i < n; ++i) {
    kesco_stretch(kesco, 1);
    square<float><<<dim3(1, 2), f(a, b), 0, kesco->stream[0]>>>(x, y);
    cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: reduce waits for this
    CHECK(kesco_copy(z, y, n, cudaMemcpyDeviceToDevice, kesco->stream[1], i == 9));
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);
    reduce<<<g, b, 0, kesco->stream[1]>>>(x, y);
  }
  finished<<<1, 1>>>(flag);
  cudaDeviceSynchronize();
}
"""


def described_text(text: str, parts: Parts | None = None, streams: int = 2) -> list[str]:
    return list(described((prologue(streams, 1, parts or Parts()) + text).encode()).lines)


def test_what_is_listed() -> None:
    plan = described((prologue(2, 1, Parts()) + TEXT).encode())
    assert plan.lines == (
        " cudaMemcpy on the default stream",
        "  square on stream 0",
        "  cudaEventRecord done 0 stream 0",
        "  kesco_copy on stream 1",
        "  cudaStreamWaitEvent stream 1 done 0",
        "  reduce on stream 1",
        " finished on the default stream",
        " cudaDeviceSynchronize",
    )
    assert (plan.streams, plan.operations, plan.waits, plan.moved, plan.graphs) == (2, 5, 1, 1, 0)
    assert plan.default == ("cudaMemcpy", "finished")
    assert str(plan) == (
        f"{plan.digest}: 5 operations, 2 of them on the default stream; 2 streams, 1 waits, 1 copies on streams, "
        "0 graphs"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("finished<<<1, 1>>>", "finished<<<1, 1, 0, kesco->stream[0]>>>"),
        ("b, 0, kesco->stream[1]>>>", "b, 0, kesco->stream[0]>>>"),
        ("    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);\n", ""),
        ("reduce<<<", "reduce2<<<"),
        ("kesco_copy(", "kesco_send("),
        ("kesco_stretch(kesco, 1)", "kesco_hold(kesco->part[0], 6, kesco->stream[1])"),
        (
            "    reduce<<<g, b, 0, kesco->stream[1]>>>(x, y);\n  }\n",
            "  }\n  reduce<<<g, b, 0, kesco->stream[1]>>>(x, y);\n",
        ),
        ("  cudaDeviceSynchronize();\n", ""),
        ("reduce<<<", "while (kesco_replay(kesco, 0, kesco->stream[0])) reduce<<<"),
    ],
)
def test_another_plan(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert described(TEXT.replace(old, new).encode()).digest != described(TEXT.encode()).digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// kesco: reduce waits for this", "/* reduce<<<1, 1>>>(x) */"),
        ("CHECK(cudaMemcpy(x, h.data()", "CHECK(  cudaMemcpy(other, g(1, 2)"),
        ("int main() {", '#define RUN(x) \\\n  kernel<<<1, 1>>>(x)\nint main() { puts("k<<<1, 2>>>()");'),
        ("\n", "\r\n"),
        ("    kesco_stretch(kesco, 1);\n", ""),
        ("    kesco_stretch(kesco, 1);\n", "    kesco = kesco_pace(kesco, 1);\n    kesco = kesco_paced(0, kesco);\n"),
        ("cudaDeviceSynchronize();", "CHECK(cudaGetLastError()); cudaDeviceSynchronize();"),
    ],
)
def test_the_same_plan(old: str, new: str) -> None:
    assert old in TEXT
    assert described_text(TEXT.replace(old, new)) == described_text(TEXT)


def test_streams_and_events_have_no_names_of_their_own() -> None:
    swapped = TEXT.replace("stream[0]", "stream[*]").replace("stream[1]", "stream[0]").replace("stream[*]", "stream[1]")
    assert described_text(swapped.replace("done[0]", "done[7]")) == described_text(TEXT)
    ranked = described_text(TEXT, Parts(ranks=(0, 1)))
    assert ranked[-2:] == ["priority of stream 0: 0", "priority of stream 1: 1"]
    assert described_text(swapped, Parts(ranks=(1, 0))) == ranked
    assert described_text(TEXT, Parts(ranks=(1, 0))) != ranked


def test_users_streams() -> None:
    text = "k<<<1, 2, 0, s[i]>>>(a); cudaMemcpyAsync(a, b, n, kind, t); cudaMemsetAsync(a, 0, n); k<<<1, 2, 0, 0>>>(a);"
    assert described_text(text) == [
        "k on s[i]", "cudaMemcpyAsync on t", "cudaMemsetAsync on the default stream", "k on the default stream",
    ]  # fmt: skip


def test_programs_in_one() -> None:
    one = described(TEXT.encode())
    both = together([("task of priority 9", one), ("task of priority 1", one)])
    assert both.lines == ("task of priority 9", *one.lines, "task of priority 1", *one.lines)
    assert (both.operations, both.default) == (10, one.default * 2)


MIX = Mix("MP-0", "a before b", "mp0", (Task("a", "a", 9, (), 0.0), Task("b", "b", 1, (), 0.0)))
TODAY = {"vec/device/kesco": "12", "vec/device/kesco-graph": "34", "MP-0/tasks/zones": "56", "a/tasks/kesco": "78",
         "b/tasks/kesco": "90"}  # fmt: skip


def rows(*variants: str) -> list[dict[str, object]]:
    return [{"setting": {"workload": "vec", "style": "device"}, "variant": one} for one in variants]


@pytest.mark.parametrize(
    ("found", "names"),
    [
        ({"rows": rows("serial", "async"), "plans": {}}, {}),
        ({"rows": rows("kesco-12", "kesco-1"), "plans": {"vec/device/kesco": "12: 4 operations"}}, {}),
        ({"rows": rows("kesco"), "plans": {"vec/device/kesco": "13: 4 operations"}},
         {"vec/device/kesco": "measured with 13, and today it is 12"}),
        ({"rows": rows("kesco", "kesco-graph"), "plans": {"vec/device/kesco": "12: 4 operations"}},
         {"vec/device/kesco-graph": "no plan was recorded"}),
        ({"rows": rows("kesco"), "plans": {"vec/device/kesco": "unknown: the tree is gone"}},
         {"vec/device/kesco": "the tree is gone"}),
        ({"rows": rows("kesco-auto"), "plans": {"vec/device/kesco-auto": "1: 4 operations"}},
         {"vec/device/kesco-auto": "kesco's tree has no such program"}),
        ({"mixes": [{"mix": "MP-0", "scheme": one} for one in ("alone", "mps-kesco", "zones")],
          "plans": {"MP-0/tasks/zones": "5: 1 operations", "a/tasks/kesco": "78: 2", "b/tasks/kesco": "9: 2"}},
         {"MP-0/tasks/zones": "measured with 5, and today it is 56",
          "b/tasks/kesco": "measured with 9, and today it is 90"}),
        ({"gpu": "without programs of kesco's"}, {}),
    ],
)  # fmt: skip
def test_figures_of_another_plan_are_stale(found: object, names: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "some.json").write_text(json.dumps(found))
    assert stale(tmp_path / "some.json", TODAY, [MIX]) == names


def test_no_published_figure_is_stale() -> None:
    """`scripts/figures.py` measures again what this names; the baseline is what today's compiler plans."""
    today = {name: state.digest for name, state in read(ROOT / "workloads/baseline.json").items()}
    chosen = mixes.load(ROOT / "workloads")
    files = sorted((ROOT / "docs/bench").glob("*.json"))
    assert files
    told = [f"{one.stem}: {name}: {why}" for one in files for name, why in stale(one, today, chosen).items()]
    assert told == [], "\n".join(("figures of plans that kesco no longer makes:", *told))
