"""``--memory reuse`` as the program runs: what is in memory at a time, serially and in the output, without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import compile_and_keep
from property.memory import HEAD, outcomes

from kesco.options import Options

pytestmark = pytest.mark.usefixtures("toolchain")
MB = 1_000_000


def program(buffers: dict[str, str], work: str, frees: str = "", main: str = "int main(int argc, char** argv)") -> str:
    """A program with buffers of so many bytes, which frees them in their order, or as `frees` says."""
    sizes = "".join(f"  const size_t {name}_bytes = {size};\n" for name, size in buffers.items())
    made = "".join(f"  CHECK(cudaMalloc(&{name}, {name}_bytes));\n" for name in buffers)
    frees = frees or "".join(f"CHECK(cudaFree({name}));\n" for name in buffers)
    return f"{main} {{\n{sizes}  float *{', *'.join(buffers)}, out[64];\n{made}{work}{frees}  return 0;\n}}\n"


def make(name: str) -> str:
    return f"  make<<<1, 32>>>({name}, {name}_bytes / 4);\n"


def mix(a: str, b: str, c: str) -> str:
    return f"  mix<<<1, 32>>>({a}, {a}_bytes / 4, {b}, {b}_bytes / 4, {c}, {c}_bytes / 4);\n"


def out(name: str) -> str:
    return f"  CHECK(cudaMemcpy(out, {name}, 256, cudaMemcpyDeviceToHost));\n"


EQUAL = dict.fromkeys("abcdefg", f"{8 * MB} * (size_t)argc")
TWO = (  # two chains, one after the other in the text, beside each other on two streams
    make("a") + mix("a", "a", "b") + mix("b", "b", "c") + make("d") + mix("d", "d", "e") + mix("e", "e", "f")
    + mix("c", "f", "g") + out("g")
)  # fmt: skip
SMALLER = {name: f"{size} * (size_t)argc" for name, size in {"a": 100 * MB, "b": 4 * MB, "c": 60 * MB}.items()}
INTO = make("a") + mix("a", "a", "b") + mix("b", "b", "c") + out("c")  # `c` gets the memory of `a`
TAKEN = (
    make("a") + mix("a", "a", "b") + mix("b", "b", "d") + mix("b", "d", "c") + out("c")
)  # `d` has got that before `c`
BETWEEN = "{ float* v; CHECK(cudaMalloc(&v, 90000000 * (size_t)argc)); CHECK(cudaFree(v)); }\n"
LATE = out("c") + "CHECK(cudaFree(b));\nCHECK(cudaFree(c));\n"


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        # Each of two chains needs two buffers at a time; `g` gets one that it waits for anyway.
        pytest.param(program(EQUAL, TWO), 56, 32, id="two streams"),
        pytest.param(program(SMALLER, INTO), 164, 104, id="a smaller one in a larger one"),
        pytest.param(program(SMALLER | {"d": EQUAL["a"]}, TAKEN), 172, 164, id="none that is large enough"),
    ],
)
def test_memory_is_handed_on(text: str, before: int, after: int, tmp_path: Path) -> None:
    found = both(text, tmp_path, [(), ("x", "x")])
    assert found == [(before * MB, after * MB), (3 * before * MB, 3 * after * MB)]


HELD = {
    "memory is allocated while some is freed already": program(
        SMALLER, INTO, f"CHECK(cudaFree(a));\n{BETWEEN}{LATE}"
    ),
    "a function that is called allocates then": "static void more(size_t n) {\n  float* v;\n  CHECK(cudaMalloc(&v, n));"
    "\n  CHECK(cudaFree(v));\n}\n"
    + program(SMALLER, INTO, f"CHECK(cudaFree(a));\nmore({90 * MB});\n{LATE}"),
    "the rest is not freed in some trips": program(
        SMALLER, INTO, f"CHECK(cudaFree(a));\nif (argc > 0) continue;\n{LATE}"
    ).replace("  CHECK(cudaMalloc(&a", f"  for (int t = 0; t < 2 + argc; ++t) {{\n{BETWEEN}  CHECK(cudaMalloc(&a")
    .replace("  return 0;", "  }\n  return 0;"),
    "a function leaves before it frees, with a caller's memory": program(
        {"c": SMALLER["c"], "e": "4 * MB"}, make("e") + mix("e", "e", "c") + "  if (argc > 0) return 1;\n" + out("c"),
        main="int inner(int argc)",
    ).replace("MB", str(MB))
    + program(
        {"a": SMALLER["a"], "b": SMALLER["b"]},
        make("a") + mix("a", "a", "b") + "  inner(argc);\n" + out("b"),
        f"CHECK(cudaFree(a));\nCHECK(cudaFree(b));\n{BETWEEN}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", HELD)
def test_the_peak_would_be_higher(case: str, tmp_path: Path) -> None:
    """What the serial program has freed may still be there, with something smaller in it: nothing may come then."""
    for before, after in both(HELD[case], tmp_path, [()]):
        assert after <= before


def both(text: str, folder: Path, runs: list[tuple[str, ...]]) -> list[tuple[int, int]]:
    """The peak of each run in bytes, before and after; the values that are copied out are the same."""
    source = folder / "input.cu"
    source.write_text(HEAD + text)
    emitted = compile_and_keep(source, Options(memory="reuse", force=True)).result.text.decode()
    serial, moved = (outcomes(t, folder / n, runs) for n, t in (("serial", HEAD + text), ("emitted", emitted)))
    assert [one.values for one in serial] == [one.values for one in moved]
    return [(one.peak, other.peak) for one, other in zip(serial, moved, strict=True)]


def test_what_nobody_uses_makes_room(tmp_path: Path) -> None:
    """The device has 80 GiB: too few for the serial program, and for the output without what `a` had."""
    sizes = {"a": "(size_t)argc << 35", "b": "(size_t)argc << 22", "c": "(size_t)argc * 60 << 30"}
    source = tmp_path / "input.cu"
    source.write_text(HEAD + program(sizes, INTO))
    emitted = compile_and_keep(source, Options(memory="reuse", force=True)).result.text.decode()
    (found,) = outcomes(emitted, tmp_path / "emitted", [()])
    assert found.peak == (60 << 30) + (1 << 22)
    with pytest.raises(AssertionError):
        outcomes(source.read_text(), tmp_path / "serial", [()])
