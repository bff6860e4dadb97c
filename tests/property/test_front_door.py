"""Whatever text stands at the front door, kesco ends with a result or with a message, in bounded time.

Sources are damaged (cut off, spliced, repeated, sprinkled with hostile tokens) or grown (deep, wide, long). What comes
out is the input itself, or text that was proven; an error is one of kesco's own, with a code. Each example runs in a
process of its own, within `SECONDS` and `GIGABYTES`. `KESCO_FUZZ=N` tries N examples of each kind instead of a few.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "tests/golden").glob("*/input.cu"))
SECONDS, GIGABYTES = 60, 4
EXAMPLES = int(os.environ.get("KESCO_FUZZ", "6"))

pytestmark = pytest.mark.usefixtures("toolchain")

HOSTILE = (
    *("{", "}", "(", ")", "<<<", ">>>", "<<<1, 1>>>();", ";", "\\", '"', "'", "/*", "*/", "//", "#", "#if", "#endif\n"),
    *("\n#define cudaStream_t int\n", "\n#define kernel\n", "\n#define main(...) main()\n", "\n#define int\n"),
    *("\n#include __FILE__\n", '\n#line 7 "elsewhere.cu"\n', "\n#pragma kesco\n", "\n#pragma kesco kernel(x) reads(\n"),
    *("\0", "\xff", "\u202e", "??/", "%:", 'R"(', ')"', "goto x; x:", "try {", 'asm("");', "__global__ ", "template <"),
    *("return", "if (0)", "for (;;)", "while (1)", "switch (1)", "[&] {", "co_await", "kesco_streams()", "->*", "..."),
    "\n#define CHECK(x) do { x; } while (0)\n", "// ---- kesco: streams and events of this file",
)  # fmt: skip

damage = st.lists(
    st.tuples(
        st.sampled_from(("cut", "remove", "repeat", "insert", "splice")),
        st.floats(0, 1),
        st.floats(0, 1),
        st.sampled_from(HOSTILE),
    ),
    min_size=1,
    max_size=4,
)


def damaged(text: str, steps: list[tuple[str, float, float, str]], other: str) -> str:
    """The text after these accidents."""
    for kind, at, to, token in steps:
        a, b = sorted((int(at * len(text)), int(to * len(text))))
        if kind == "cut":
            text = text[:b]
        elif kind == "remove":
            text = text[:a] + text[min(b, a + 40) :]
        elif kind == "repeat":
            text = text[:b] + text[a:]
        elif kind == "insert":
            text = text[:a] + token + text[a:]
        else:
            text = text[:a] + other[int(to * len(other)) :]
    return text


def compiled(folder: Path, text: str) -> None:
    """Compile a text in bounds; it ends as promised."""
    source, target = folder / "input.cu", folder / "output.cu"
    source.write_bytes(text.encode("utf-8", "surrogateescape"))
    target.unlink(missing_ok=True)
    limit = (GIGABYTES << 30, GIGABYTES << 30)
    command = [sys.executable, "-m", "kesco", "compile", str(source), "-o", str(target), "--diagnostics", "json"]
    done = subprocess.run(
        command,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        cwd=ROOT,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    said = done.stderr.decode("utf-8", "replace")
    assert b"Traceback" not in done.stderr and done.returncode in (0, 3), said
    found = json.loads(said)
    if done.returncode:
        assert found and found[0]["code"].startswith("K1") and not target.exists()
    else:
        assert target.read_bytes() == source.read_bytes() or b"kesco: end" in target.read_bytes()


@seed(20240817)
@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(SOURCES), st.sampled_from(SOURCES), damage)
def test_damaged_sources(
    tmp_path_factory: pytest.TempPathFactory, source: Path, other: Path, steps: list[tuple[str, float, float, str]]
) -> None:
    texts = [one.read_text("utf-8", "surrogateescape") for one in (source, other)]
    compiled(tmp_path_factory.mktemp("damaged"), damaged(texts[0], steps, texts[1]))


KERNEL = "__global__ void k(float* x) { x[0] += 1; }\n"
GROWN = {
    "nothing at all": lambda n: "",
    "one byte": lambda n: "{",
    "deep blocks": lambda n: KERNEL + "int main() {" + "{" * n + "}" * n + "}",
    "deep parentheses": lambda n: KERNEL + "int main() { return " + "(" * n + "0" + ")" * n + "; }",
    "a long sum": lambda n: KERNEL + "int main() { return " + "+".join(["1"] * n) + "; }",
    "a chain of else": lambda n: KERNEL + "int main(int c, char**) {" + "if (c == 1) c++; else " * n + "c--; }",
    "deep loops": lambda n: KERNEL
    + "void f(float* p, float* q, int n) {"
    + "for (int i = 0; i < n; i++) {" * (n // 100)
    + "k<<<1, 1>>>(p); k<<<1, 1>>>(q);"
    + "}" * (n // 100)
    + "}",
    "many trips": lambda n: KERNEL
    + "int main() { float* x[64]; for (int i = 0; i < 64; i++) cudaMalloc(&x[i], 4);"
    + "for (int i = 0; i < 64; i++) for (int j = 0; j < 64; j++) k<<<1, 1>>>(x[j]); }",
    "a long line": lambda n: KERNEL + "int main() { float *p, *q; cudaMalloc(&p, 4); cudaMalloc(&q, 4);"
    + "k<<<1, 1>>>(p); k<<<1, 1>>>(q);" * (n // 10) + " }",
    "many macros": lambda n: "".join(f"#define M{i} M{i + 1}\n" for i in range(n)) + KERNEL,
    "a macro that doubles": lambda n: "#define A0 k<<<1, 1>>>(p);\n"
    + "".join(f"#define A{i + 1} A{i} A{i}\n" for i in range(8))
    + KERNEL + "int main() { float* p; cudaMalloc(&p, 4); A8 }",
    "an include of itself": lambda n: '#include "input.cu"\nint main() { return 0; }',
    "bytes that are no text": lambda n: KERNEL + "// \udcff\udcfe\udc80\nint main() { return 0; }",
    "names of ours": lambda n: KERNEL
    + "struct KescoStreams {}; int kesco = 1; int main() { float *kesco, *tail; cudaMalloc(&kesco, 4);"
    + "cudaMalloc(&tail, 4); k<<<1, 1>>>(kesco); k<<<1, 1>>>(tail); }",
    "macros over our names": lambda n: "#define kesco k e s c o\n#define done 1\n#define stream[ 2\n" + KERNEL
    + "int main() { float *p, *q; cudaMalloc(&p, 4); cudaMalloc(&q, 4); k<<<1, 1>>>(p); k<<<1, 1>>>(q); }",
}  # fmt: skip


SOME = GROWN if os.environ.get("KESCO_THOROUGH") else list(GROWN)[::3]


@pytest.mark.parametrize("kind", SOME)
def test_grown_sources(tmp_path: Path, kind: str) -> None:
    compiled(tmp_path, GROWN[kind](4000 if EXAMPLES > 10 else 1000))
