"""Which statements do nothing but issue copies and launches, and which lines are theirs: one program, read once."""

from __future__ import annotations

import re

import pytest

from kesco.ir import program as ir
from kesco.issue.lines import piece_of
from kesco.issue.statements import issued
from kesco.options import Options
from kesco.session import Session
from tests.integration.test_order import HEAD

pytestmark = pytest.mark.usefixtures("toolchain")

COPY = "cudaMemcpyAsync(a, p, n, cudaMemcpyHostToDevice)"
ONLY_ISSUE = {
    "plain": f"{COPY};",
    "checked": f"CHECK({COPY});",
    "checked by a function": f"check({COPY}, __LINE__);",
    "in a loop": f"for (int i = 0; i < 3; ++i) CHECK({COPY});",
    "from a container": "cudaMemcpyAsync(a, h.data(), h.size(), cudaMemcpyHostToDevice);",
    "launch": "square<<<dim3(n), 32>>>(a, b, n);",
}
DO_MORE = {
    "an argument that counts": "cudaMemcpyAsync(a, p + next++, n, cudaMemcpyHostToDevice);",
    "an argument of unknown code": "cudaMemcpyAsync(a, p + elsewhere(1), n, cudaMemcpyHostToDevice);",
    "an argument of the library": "cudaMemcpyAsync(a, p + rand() % 2, n, cudaMemcpyHostToDevice);",
    "a volatile argument": "cudaMemcpyAsync(a, p, seen, cudaMemcpyHostToDevice);",
    "a counter from outside": f"for (next = 0; next < 3; ++next) {COPY};",
    "no end": f"for (;;) {COPY};",
    "a status that stays": f"status = {COPY};",
    "a way out of a function": f"BACK({COPY});",
    "a check around a call": f"QUIT({COPY});",
    "an exception": f"THROW({COPY});",
    "an exception of a function": f"thrown({COPY});",
    "a store where it failed": f"SET({COPY});",
    "a condition": f"if (n > 3) {COPY};",
    "a declaration": f"cudaError_t mine = {COPY};",
    "another call": "elsewhere(2);",
    "stated effects": "told<<<1, 32>>>(a, b, n);",
    "stated outputs": "promised<<<1, 32>>>(a, b, n);",
}
ODD_LINES = {
    "another behind it": f"{COPY}; next = 1;",
    "a comment that goes on": f"{COPY};  // and \\\nso on",
    "a directive inside": f"CHECK(\n#if 1\n{COPY}\n#endif\n);",
    "a directive above": f"#if 1\n{COPY};\n#endif",
    "the end of a comment above": f"/* first\n */\n{COPY};",
    "a macro that makes two": f"BOTH({COPY}, {COPY});",
    "a block": f"{{ {COPY}; }}",
}
EVERY = {**ONLY_ISSUE, **DO_MORE, **ODD_LINES}


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> tuple[ir.Program, ir.Function]:
    path = tmp_path_factory.mktemp("issue") / "input.cu"
    told = "#pragma kesco kernel(told) reads(a) writes(b)\n__global__ void told(const float*, float*, long);\n"
    told += "__global__ void promised(const float* a, float* b, long n, int outputs = 1);\n"
    body = "".join(f"puts({number});\n{text}\n" for number, text in enumerate(EVERY.values()))
    body = re.sub(r"puts\((\d+)\)", r'puts("\1")', body)
    start = (
        "int work(float* a, float* b, float* p, long n) {\nint next = 0; cudaError_t status; volatile long seen = n;"
    )
    path.write_text(f"{HEAD}{told}{start}\nstd::vector<float> h(n);\n{body}return status;\n}}\nint main() {{}}\n")
    program = Session(str(path), Options()).program
    return program, next(f for f in program.functions if f.name == "work")


def block_and_place(read: tuple[ir.Program, ir.Function], name: str) -> tuple[tuple[ir.Stmt, ...], int]:
    program, function = read
    assert isinstance(function.body, ir.Block)
    mark = f'puts("{list(EVERY).index(name)}");'.encode()
    at = program.text.index(mark) + len(mark)
    block = function.body.body
    return block, next(n for n, one in enumerate(block) if one.span.start >= at)


def work_of(read: tuple[ir.Program, ir.Function], name: str) -> frozenset[int]:
    program, function = read
    block, at = block_and_place(read, name)
    every = {n.operation for n in ir.walk(block[at]) if isinstance(n, ir.Launch) or "Memcpy" in getattr(n, "name", "")}
    return issued(program, function, block[at], frozenset(every), frozenset())


@pytest.mark.parametrize("name", ONLY_ISSUE)
def test_what_only_issues(read: tuple[ir.Program, ir.Function], name: str) -> None:
    block, at = block_and_place(read, name)
    assert len(work_of(read, name)) == 1
    piece = piece_of(read[0], block, at)
    assert piece is not None and read[0].text[piece[0] : piece[1]].decode() == f"{ONLY_ISSUE[name]}\n"


@pytest.mark.parametrize("name", DO_MORE)
def test_what_does_more(read: tuple[ir.Program, ir.Function], name: str) -> None:
    assert work_of(read, name) == frozenset()


@pytest.mark.parametrize("name", ODD_LINES)
def test_lines_that_are_not_a_statements_own(read: tuple[ir.Program, ir.Function], name: str) -> None:
    assert piece_of(read[0], *block_and_place(read, name)) is None
