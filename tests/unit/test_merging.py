"""Merging without a compiler: what the command line says, launches, the facts about processes."""

from __future__ import annotations

import pytest

from kesco.errors import UsageError
from kesco.merging.specs import Spec, parse
from kesco.merging.state import diagnose, own_calls
from kesco.merging.together import written
from kesco.merging.units import Reference, Unit
from kesco.merging.wrap import Wrapped, launches
from kesco.source import Span

HERE = Span("a.cu", 0, 1, 3, 5)


def test_programs_on_the_command_line() -> None:
    assert parse(["x/a.cu:main=3", "b-1.cu=2", "y/a.cu=9"]) == (
        Spec("x/a.cu", 3, "a"), Spec("b-1.cu", 2, "b_1"), Spec("y/a.cu", 9, "a_2"),
    )  # fmt: skip


def test_every_program_has_a_name_of_its_own_that_a_kernel_can_have() -> None:
    found = parse(["a_2.cu=3", "a.cu=2", "x/a.cu=1", "x/a-2.cu=1", "ünï.cu=1"])
    assert [one.name for one in found] == ["a_2", "a", "a_3", "a_2_2", "_n_"]


@pytest.mark.parametrize("words", [[], ["a.cu=1"], ["a.cu", "b.cu=1"], ["a.cu=10", "b.cu=1"], ["a.cu:f=1", "b.cu=1"]])
def test_what_names_no_programs(words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert caught.value.diagnostics[0].code == "K120"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("k<<<1, 2>>>(a, b);", "k<<<1, 2, 0, kesco_on()>>>(a, b);"),
        ("k<<<dim3(1, 2), f(a, b), n>>>();", "k<<<dim3(1, 2), f(a, b), n, kesco_on()>>>();"),
        ("k<<<g, b, 0, s[i]>>>(); k<<<g, b>>>();", "k<<<g, b, 0, kesco_on( s[i])>>>(); k<<<g, b, 0, kesco_on()>>>();"),
        ("// k<<<1, 2>>>();\n", "// k<<<1, 2>>>();\n"),
        ('puts("k<<<1, 2>>>()");', 'puts("k<<<1, 2>>>()");'),
        ("int n = 1'000; k<<<1, ','>>>();", "int n = 1'000; k<<<1, ',', 0, kesco_on()>>>();"),
        ("k<<<CONFIG>>>();", "k<<<CONFIG>>>();"),  # refused when the merged text is read
    ],
)
def test_launches_are_given_the_tasks_stream(before: str, after: str) -> None:
    assert launches(before) == after


def unit(*names: str, device: bool = False, text: bytes = b"") -> Unit:
    found = tuple(Reference(f"c:@F@{name}", "", name, HERE, device, True) for name in names)
    return Unit("a.cu", text, found, (), 0, (), frozenset(), ())


@pytest.mark.parametrize(
    ("one", "other", "codes"),
    [
        (unit("rand"), unit("printf"), []),
        (unit("rand"), unit("srand"), ["K121"]),
        (unit("std::rand"), unit("std::cout"), []),
        (unit("std::cout"), unit("std::cout"), ["K121"]),
        (unit("setenv"), unit(), ["K121"]),
        (unit("setlocale"), unit("printf"), ["K121"]),
        (unit("getopt_long_only"), unit("getopt"), ["K121"]),
        (unit("std::type_info::name"), unit(), ["K121"]),
        (unit(text=b"  fclose(stdout);"), unit(), ["K122"]),
        (unit(text=b'#pragma GCC optimize("fast-math")'), unit(), ["K122"]),
        (unit(text=b"#pragma GCC diagnostic push"), unit(), []),
        (unit("std::thread::thread"), unit(), ["K121"]),
        (unit("cudaMemcpy", "cudaGetLastError", "cudaStreamCreate"), unit("cudaFree"), []),
        (unit("cudaDeviceReset"), unit(), ["K122"]),
        (unit("cudaSetDevice"), unit("cublasSgemm"), ["K122", "K122"]),
        (unit("thrust::sort"), unit("cuMemAlloc"), ["K122", "K122"]),
        (unit("printf", device=True), unit("printf"), []),
        (unit("printf", device=True), unit("printf", device=True), ["K121"]),
        (unit(text=b"__managed__ int n;"), unit(), ["K122"]),
        (unit(text=b"int n = __COUNTER__;"), unit(), ["K122"]),
    ],
)
def test_what_one_process_would_share(one: Unit, other: Unit, codes: list[str]) -> None:
    assert [d.code for d in diagnose(["a", "b"], [one, other])] == codes


def test_what_the_program_declares_itself_is_its_own() -> None:
    own = Unit("a.cu", b"", (Reference("7", "", "rand", HERE, False, True),) * 2, (), 0, (), frozenset(), ())
    assert diagnose(["a", "b"], [own, own]) == ()


def test_one_name_with_c_linkage_is_one() -> None:
    both = Unit("a.cu", b"", (), (), (0, 1), (), frozenset({"scale"}), ())
    assert [d.code for d in diagnose(["a", "b"], [both, both])] == ["K121"]


@pytest.mark.parametrize("one_thread", [False, True])
def test_every_call_that_is_a_tasks_own_has_a_function(one_thread: bool) -> None:
    text = written(parse(["a.cu=3", "b.cu=2"]), [Wrapped("", (), ())] * 2, one_thread).decode()
    assert [name for name in own_calls() if f" kesco_{name}(" not in text] == []
