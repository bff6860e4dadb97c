"""Which sources are not worth a look: those whose words show a single place that gives the device work, in no loop."""

from __future__ import annotations

import pytest

from kesco.wrapper.single import may_overlap

KERNEL = b"__global__ void k(int* p, int n) { for (int i = 0; i < n; i++) p[i] = i; }\n"
COPY = b"cudaMemcpy(d, h, n, cudaMemcpyHostToDevice); k<<<1, 1>>>(d, n); cudaMemcpy(h, d, n, cudaMemcpyDeviceToHost);"


@pytest.mark.parametrize(
    "text",
    [
        b"int main() { k<<<1, 1>>>(d, n); }",
        b"int main() { " + COPY + b" }",
        b"// k<<<1, 1>>>(a); k<<<1, 1>>>(b);\n/* cudaMemcpyAsync */ void f() { k<<<1, 1>>>(d, n); }",
        b"const char* said = \"for k<<<1, 1>>>(a) in R\"; void f() { int n = 1'000; char c = '{'; k<<<1, 1>>>(d, n); }",
        b'namespace a { extern "C" { void g() { for (;;) h(); }\nvoid f() { { k<<<1, 1>>>(d, n); } for (;;) g(); } } }',
        b"void f() { k<<<1, 1>>>(d, n); cudaMemset(e, 0, n); }",
        b"template <class T> struct S { void f() { int forty = 40; k<<<1, 1>>>(d, forty); } };",
        b"int main() { return 0; }  // nothing at all",
    ],
)
def test_nothing_to_overlap(text: bytes) -> None:
    assert not may_overlap(KERNEL + text)


@pytest.mark.parametrize(
    "text",
    [
        b"int main() { k<<<1, 1>>>(d, n); k<<<1, 1>>>(e, n); }",
        b"int main() { for (int i = 0; i < n; i++) k<<<1, 1>>>(d + i, n); }",
        b"int main() { while (more()) { if (a) { k<<<1, 1>>>(d, n); } } }",
        b"int main() { do k<<<1, 1>>>(d, n); while (more()); }",
        b"int main() { again: k<<<1, 1>>>(d, n); if (more()) goto again; }",
        b"struct S { void f() { for (;;) g(); } void h() { k<<<1, 1>>>(d, n); } };",  # nobody looks closer
        b"#define RUN(p) k<<<1, 1>>>(p, n)\nint main() { RUN(d); RUN(e); }",
        b"#define RUN(p) \\\n  k<<<1, 1>>>(p, n)\nint main() { RUN(d); RUN(e); }",
        b"int main() { k<<<1, 1>>>(d, n); cudaMemcpyAsync(e, h, n, cudaMemcpyHostToDevice); }",
        b"int main() { k<<<1, 1>>>(d, n); cudaMemcpy(e, f, n, cudaMemcpyDeviceToDevice); }",
        b"int main() { k<<<1, 1>>>(d, n); cudaMemcpy(e, f, n, cudaMemcpyDefault); }",
        b"int main() { k<<<1, 1>>>(d, n); cudaMemcpy(e, f, n, way); }",
        b"int main() { cudaLaunchKernel(k, 1, 1, a); cudaLaunchKernel(k, 1, 1, b); }",
        b"int main() { k<<<1, 1>>>(d, n); cublasSscal(h, n, a, e, 1); }",
        b"#pragma kesco task(a)\nint main() { k<<<1, 1>>>(d, n); }",
        b"int f() { } }\nint main() { k<<<1, 1>>>(d, n); }",  # braces that do not tell
    ],
)
def test_what_may_overlap_and_what_the_words_do_not_settle(text: bytes) -> None:
    assert may_overlap(KERNEL + text)
