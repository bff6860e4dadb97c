"""The CUDA and host tables: complete, and in agreement with every CUDA header that is installed here."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import FrozenInstanceError, dataclass, fields
from functools import cache
from pathlib import Path

import pytest

from kesco.frontend.api_table import (
    CUDA_KINDS,
    HOST_KINDS,
    RESULT,
    CudaCall,
    TableError,
    cuda_call,
    cuda_calls,
    host_call,
    host_calls,
    is_cuda_name,
    parse_cuda_table,
    parse_host_table,
)

# ------ the headers

DECLARATION = re.compile(r"extern\b[^;{}()]*?\b(?:CUDARTAPI\s+)?(cuda[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
TEMPLATE = re.compile(r"static\s+__inline__[^;{}()]*?\b(cuda[A-Z]\w*)\s*\(([^;{}]*?)\)\s*\{")
PER_THREAD = re.compile(r"_pt(?:sz|ds)$")  # names behind macros, for the per-thread default stream
DEFAULT_VALUE = re.compile(r"__dv\([^)]*\)|=.*$")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a declaration: its type in normal form, and its name."""

    type: str
    name: str


Signature = tuple[Parameter, ...]
Header = dict[str, set[Signature]]


def version_of(text: str) -> tuple[int, int]:
    return tuple(map(int, text.split(".")))  # type: ignore[return-value]


def parameter_of(text: str) -> Parameter:
    words = DEFAULT_VALUE.sub("", text).strip()
    match = re.fullmatch(r"(.*?)(\w+)", words, re.DOTALL)
    type_, name = match.groups() if match else (words, "")  # a function pointer keeps its name in the type
    type_ = re.sub(r"\b(?:struct|enum|class)\b", " ", type_)
    return Parameter(re.sub(r"\s*([*&]+)\s*", r" \1", " ".join(type_.split())).strip(), name)


def signature_of(text: str) -> Signature:
    text = text.strip()
    return () if text in ("", "void") else tuple(map(parameter_of, text.split(",")))


def parse_header(path: Path, pattern: re.Pattern[str]) -> Header:
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", " ", path.read_text(encoding="latin-1"), flags=re.S | re.M)
    header: Header = {}
    for name, parameters in pattern.findall(text):
        if not PER_THREAD.search(name):
            header.setdefault(name, set()).add(signature_of(parameters))
    return header


def include_folders() -> list[Path]:
    """The folders with a CUDA header: the wheels of CUDA 13 and 12, then the usual places of a toolkit."""
    found = [Path(root, "include") for root in (os.environ.get("CUDA_PATH"), "/usr/local/cuda") if root]
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        found[:0] = [Path(root, "cu13", "include"), Path(root, "cuda_runtime", "include")]
    return [folder for folder in found if (folder / "cuda_runtime_api.h").is_file()]


@dataclass(frozen=True)
class Cuda:
    """One installed CUDA: its version, its C functions and its C++ templates."""

    version: tuple[int, int]
    c: Header
    cxx: Header

    def has(self, call: CudaCall) -> bool:
        """Whether the entry's own ``since`` and ``removed`` say that this CUDA declares it."""
        since, removed = version_of(call.since or "0.0"), version_of(call.removed or "99.0")
        return since <= self.version < removed

    def signatures(self, call: CudaCall) -> set[Signature]:
        """The declarations an entry speaks of: C, or the C++ ones of as many parameters."""
        header = self.c if call.header == "cuda_runtime_api.h" else self.cxx
        found = header.get(call.name, set())
        return {s for s in found if call.parameters in (None, len(s))}


@cache
def read(folder: Path) -> Cuda:
    text = (folder / "cuda_runtime_api.h").read_text(encoding="latin-1")
    number = int(re.search(r"#define\s+CUDART_VERSION\s+(\d+)", text).group(1))  # type: ignore[union-attr]
    cxx = parse_header(folder / "cuda_runtime.h", TEMPLATE)
    c = parse_header(folder / "cuda_runtime_api.h", DECLARATION)
    return Cuda((number // 1000, number % 1000 // 10), c, cxx)


FOLDERS: list[Path | None] = [*include_folders()] or [None]


@pytest.fixture(params=FOLDERS, ids=str)
def cuda(request: pytest.FixtureRequest) -> Cuda:
    if request.param is None:
        pytest.skip("no CUDA header found: neither the wheel nvidia-cuda-runtime nor /usr/local/cuda/include")
    return read(request.param)


def declared(cuda: Cuda) -> list[tuple[CudaCall, Signature]]:
    """Every entry with each of its declarations in this CUDA."""
    return [(call, signature) for call in cuda_calls() if cuda.has(call) for signature in cuda.signatures(call)]


def places(call: CudaCall) -> dict[str, tuple[int, ...]]:
    """All argument indexes of an entry, by field."""
    single = {f.name for f in fields(CudaCall)} - {"parameters", "beside", "reads", "writes", "out"}
    found = {name: (value,) for name in single if type(value := getattr(call, name)) is int}
    return found | {"reads": call.reads, "writes": call.writes, "out": call.out}


# ------ the table and the header


def test_every_function_of_the_header_is_in_the_table(cuda: Cuda) -> None:
    assert len(cuda.c) > 250, "the header was not understood"
    assert sorted(name for name in cuda.c if cuda_call(name) is None) == []


def test_every_template_of_the_header_is_in_the_table(cuda: Cuda) -> None:
    assert "cudaMemcpyToSymbol" in cuda.cxx, "the header was not understood"
    assert sorted(name for name in cuda.cxx if cuda_call(name) is None) == []


def test_every_entry_is_declared_by_the_header(cuda: Cuda) -> None:
    expected = [c for c in cuda_calls() if cuda.has(c) and c.header != "cuda_profiler_api.h"]
    unmarked = {"cudaGetDeviceProperties_v2", "cudaGetDeviceProperties"}  # one is a macro for the other
    unknown = {c.name for c in expected if not cuda.signatures(c)} - unmarked
    assert sorted(unknown) == []


def test_removed_entries_are_gone_from_the_header(cuda: Cuda) -> None:
    gone = [c for c in cuda_calls() if not cuda.has(c)]
    assert sorted(c.name for c in gone if c.header == "cuda_runtime_api.h" and cuda.signatures(c)) == []


def test_every_signature_of_a_function_is_in_the_table(cuda: Cuda) -> None:
    for name, signatures in [*cuda.c.items(), *cuda.cxx.items()]:
        for signature in signatures:
            assert cuda_call(name, len(signature)) is not None, f"{name} with {len(signature)} parameters"


def test_every_index_is_a_parameter(cuda: Cuda) -> None:
    for call, signature in declared(cuda):
        for field, indexes in places(call).items():
            assert all(i < len(signature) for i in indexes), f"{call.name}.{field}"


def test_stream_is_the_stream_parameter_and_none_is_forgotten(cuda: Cuda) -> None:
    for call, signature in declared(cuda):
        streams = [i for i, p in enumerate(signature) if p.type == "cudaStream_t"]
        if call.name == "cudaStreamCopyAttributes":  # two of them
            streams = streams[:1]
        assert streams == ([] if call.stream is None else [call.stream]), call.name


def test_direction_is_the_copy_kind_and_none_is_forgotten(cuda: Cuda) -> None:
    for call, signature in declared(cuda):
        kinds = [i for i, p in enumerate(signature) if p.type == "cudaMemcpyKind"]
        if call.kind != "graph":
            assert kinds == ([] if call.direction is None else [call.direction]), call.name


def test_event_is_the_event_parameter_and_none_is_forgotten(cuda: Cuda) -> None:
    for call, signature in declared(cuda):
        events = [i for i, p in enumerate(signature) if p.type == "cudaEvent_t"]
        if call.name.startswith("cudaEventElapsedTime"):  # two of them
            events = events[1:]
        if call.kind != "graph":
            assert events == ([] if call.event is None else [call.event]), call.name


HANDLES = {
    "cudaArray_t",
    "cudaArray_const_t",
    "cudaPitchedPtr",
}  # pointers to memory that do not look like it


def test_indexes_have_the_types_their_fields_are_about(cuda: Cuda) -> None:
    for call, signature in declared(cuda):
        types = {field: [signature[i].type for i in indexes] for field, indexes in places(call).items()}
        for type_ in types["reads"] + types["writes"] + types.get("frees", []):
            assert "*" in type_ or type_ in HANDLES or type_ == "const T &", f"{call.name}: memory in {type_}"
        if call.kind != "prefetch":
            for i in call.reads:
                assert "const" in signature[i].type, f"{call.name}: reads {signature[i]}"
        for i in call.writes:
            assert "const" not in signature[i].type or i == call.symbol, f"{call.name}: writes {signature[i]}"
        for i in call.out:
            assert signature[i].type.endswith("*"), f"{call.name}: fills {signature[i]}"
        for type_ in types.get("allocates", []):
            assert re.search(r"_t \*$|\*\*$|cudaPitchedPtr \*$", type_), f"{call.name}: allocates {type_}"
        for type_ in types.get("size", []) + types.get("shared", []):
            assert type_ == "size_t", f"{call.name}: size {type_}"
        for type_ in types.get("flags", []):
            assert type_ == "unsigned int", f"{call.name}: flags {type_}"
        for type_ in types.get("grid", []) + types.get("block", []):
            assert type_ == "dim3", f"{call.name}: {type_}"
        if call.symbol is not None:
            assert signature[call.symbol].name == "symbol", call.name


def test_a_query_lists_every_variable_it_fills(cuda: Cuda) -> None:
    inputs = {"function", "func", "entry", "location", "pHost", "kernel"}  # not const, not written
    for call, signature in declared(cuda):
        if call.kind == "query":
            filled = [i for i, p in enumerate(signature) if "*" in p.type and "const" not in p.type.split("*")[-2]]
            filled = [i for i in filled if signature[i].name not in inputs]
            assert list(call.out) == filled, call.name


def test_an_asynchronous_form_is_the_same_with_a_stream_behind(cuda: Cuda) -> None:
    for call, signature in declared(cuda):
        if call.async_form is None:
            continue
        other = cuda_call(call.async_form)
        assert other is not None, call.name
        (longer,) = {s for s in cuda.c[call.async_form] if len(s) == len(signature) + 1}
        assert [p.type for p in longer] == [*(p.type for p in signature), "cudaStream_t"], call.name
        assert (other.kind, other.reads, other.writes) == (call.kind, call.reads, call.writes), call.name
        assert (other.size, other.direction, other.symbol) == (call.size, call.direction, call.symbol), call.name


def test_whatever_has_an_async_sibling_says_so(cuda: Cuda) -> None:
    without = {"cudaMalloc", "cudaFree"}  # another allocator, not the same call
    without |= {"cudaMemcpyPeer", "cudaMemcpy3DPeer"}  # they also order the work of two devices
    siblings = {n for n in cuda.c if f"{n}Async" in cuda.c} - without
    assert sorted(n for n in siblings if getattr(cuda_call(n), "async_form", None) is None) == []


# ------ what entries say


def test_what_the_important_calls_mean() -> None:
    memcpy = cuda_call("cudaMemcpy")
    assert memcpy is not None
    assert (memcpy.kind, memcpy.writes, memcpy.reads, memcpy.size) == ("copy", (0,), (1,), 2)
    assert (memcpy.direction, memcpy.implicit_stream, memcpy.async_form) == (3, True, "cudaMemcpyAsync")
    assert memcpy.waits() == memcpy.waits("DeviceToDevice") == memcpy.waits("HostToDevice") == "maybe"
    assert memcpy.waits("DeviceToHost") == "stream"
    asynchronous = cuda_call("cudaMemcpyAsync")
    assert asynchronous is not None
    assert asynchronous.waits("DeviceToHost") == "maybe"
    symbol = cuda_call("cudaMemcpyToSymbol")
    assert symbol is not None
    assert (symbol.symbol, symbol.fixed_direction) == (0, "HostToDevice")
    free = cuda_call("cudaFree")
    assert free is not None
    assert (free.kind, free.frees, free.host_waits) == ("free", 0, "maybe")
    for name, waits in {"cudaDeviceSynchronize": "device", "cudaStreamSynchronize": "stream"}.items():
        call = cuda_call(name)
        assert call is not None
        assert (call.kind, call.host_waits) == ("sync", waits)


def test_signatures_are_told_apart_by_their_number_of_parameters() -> None:
    assert getattr(cuda_call("cudaMemPrefetchAsync"), "stream", None) == 4
    assert getattr(cuda_call("cudaMemPrefetchAsync", 5), "stream", None) == 4
    assert getattr(cuda_call("cudaMemPrefetchAsync", 4), "stream", None) == 3
    assert cuda_call("cudaMemPrefetchAsync", 3) is None
    assert getattr(cuda_call("cudaMallocAsync", 4), "memory", None) == "managed"
    assert getattr(cuda_call("cudaMallocHost", 3), "flags", None) == 2
    assert cuda_call("cudaMalloc", 2) is cuda_call("cudaMalloc")


def test_polls_are_never_mistaken_for_plain_questions() -> None:
    for name in ("cudaStreamQuery", "cudaEventQuery"):
        assert getattr(cuda_call(name), "kind", None) == "opaque"
    assert getattr(cuda_call("cudaEventElapsedTime"), "shows", None) == "progress"


def test_entries_are_frozen_and_shared() -> None:
    call = cuda_call("cudaMalloc")
    assert call is cuda_call("::cudaMalloc")
    with pytest.raises(FrozenInstanceError):
        call.kind = "query"  # type: ignore[misc, union-attr]


def test_every_kind_is_in_use() -> None:
    assert {c.kind for c in cuda_calls()} == CUDA_KINDS
    assert {c.kind for c in host_calls()} == HOST_KINDS


# ------ names


@pytest.mark.parametrize(
    "name",
    [
        "cudaMalloc",
        "cudaNeverHeardOf",
        "cuMemAlloc_v2",
        "__cudaPushCallConfiguration",
        "cublasSgemm_v2",
        "ncclSend",
        "cufftExecC2C",
        "curandGenerateUniform",
        "cusparseSpMV",
        "cusolverDnSgetrf",
        "cudnnConvolutionForward",
        "thrust::sort",
        "::thrust::reduce",
        "cub::DeviceReduce::Sum",
        "cuda::std::min",
    ],
)
def test_names_of_cuda(name: str) -> None:
    assert is_cuda_name(name)


@pytest.mark.parametrize("name", ["printf", "customSort", "cut", "cudahelper", "my::cudaMalloc", "std::thrust", ""])
def test_names_not_of_cuda(name: str) -> None:
    assert not is_cuda_name(name)
    assert cuda_call(name) is None


def test_every_entry_has_a_name_of_cuda() -> None:
    assert all(is_cuda_name(c.name) for c in cuda_calls())
    assert not any(is_cuda_name(c.name) for c in host_calls())


# ------ the host table


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sqrtf", "pure"),
        ("std::sqrt", "pure"),
        ("__builtin_memcpy", "memory"),
        ("printf", "io"),
        ("std::operator<<", "io"),
        ("std::basic_ostream::operator<<", "io"),
        ("std::__cxx11::basic_string::c_str", "pure"),
        ("std::vector::size", "container"),
        ("std::swap", "swap"),
        ("std::chrono::_V2::steady_clock::now", "clock"),
        ("std::chrono::duration::count", "pure"),
        ("omp_get_wtime", "clock"),
        ("__builtin_readcyclecounter", "clock"),
        ("__builtin_ia32_rdtscp", "clock"),
        ("omp_set_lock", "thread"),
        ("pthread_create", "thread"),
        ("std::thread::thread", "thread"),
        ("std::this_thread::sleep_for", "clock"),
        ("std::exit", "exit"),
    ],
)
def test_host_names(name: str, kind: str) -> None:
    assert getattr(host_call(name), "kind", None) == kind


@pytest.mark.parametrize(
    "name",
    ["frobnicate", "qsort", "std::transform", "std::remove", "std::basic_stringx", "longjmp", "my::sqrt", ""],
)
def test_unknown_host_names_are_opaque(name: str) -> None:
    assert host_call(name) is None


def test_the_exact_name_and_the_longer_wildcard_win() -> None:
    assert getattr(host_call("std::basic_string::copy"), "writes", None) == (0,)
    assert getattr(host_call("std::basic_string::append"), "name", None) == "std::basic_string::*"
    assert getattr(host_call("std::this_thread::other"), "name", None) == "std::this_thread::*"
    lengths = [len(c.name) for c in host_calls() if c.name.endswith("*")]
    assert lengths == sorted(lengths, reverse=True)


def test_host_memory_calls() -> None:
    assert getattr(host_call("memcpy"), "writes", None) == (0,)
    assert getattr(host_call("memcpy"), "reads", None) == (1,)
    assert getattr(host_call("malloc"), "allocates", None) == RESULT
    assert getattr(host_call("realloc"), "frees", None) == 0
    assert getattr(host_call("fread"), "writes", None) == (0,)
    assert getattr(host_call("scanf"), "writes_from", None) == 1


def test_other_overloads_of_a_host_name_are_opaque() -> None:
    assert host_call("std::move", 1) is not None
    assert host_call("std::move", 3) is None  # the algorithm
    assert getattr(host_call("std::sort", 3), "callbacks", None) == (2,)


# ------ malformed tables


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[f]\nreads = [0]", "no kind"),
        ('[f]\nkind = "odd"', "bad value 'odd'"),
        ('[f]\nkind = "query"\nraeds = [0]', "unknown field 'raeds'"),
        ('[f]\nkind = "query"\nout = 0', "bad value 0 for 'out'"),
        ('[f]\nkind = "query"\nout = [0, 0]', "for 'out'"),
        ('[f]\nkind = "query"\nstream = -1', "for 'stream'"),
        ('[f]\nkind = "query"\nstream = true', "for 'stream'"),
        ('[f]\nkind = "query"\nimplicit_stream = 1', "for 'implicit_stream'"),
        ('[f]\nkind = "query"\nsince = "13"', "for 'since'"),
        ('[f]\nkind = "query"\nnote = ""', "for 'note'"),
        ('[f]\nkind = "alloc"\nmemory = "device"', "allocates"),
        ('[f]\nkind = "alloc"\nallocates = 0', "memory"),
        ('[f]\nkind = "copy"\nreads = [1]\nwrites = [0]\ndirection = 2', "stream"),
        ('[f]\nkind = "copy"\nreads = [1]\nwrites = [0]\nstream = 2', "direction"),
        ('[f]\nkind = "memset"\nwrites = [0]\nstream = 2\nimplicit_stream = true', "implicit_stream"),
        ('[f]\nkind = "query"\n[[f.overloads]]\nparameters = 1', "told apart"),
        ('[f]\nkind = "query"\nparameters = 1\n[[f.overloads]]\nparameters = 1', "told apart"),
        ('[f]\nkind = "event_wait"\nstream = 0', "event"),
    ],
)
def test_a_malformed_cuda_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(TableError, match=re.escape(message)):
        parse_cuda_table(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[f]\nkind = "pure"', "unknown key 'f'"),
        ('[[group]]\nkind = "pure"', "without names"),
        ('[[group]]\nnames = ["f"]', "no kind"),
        ('[[group]]\nkind = "alloc"\nnames = ["f"]', "bad value 'alloc'"),
        ('[[group]]\nkind = "memory"\nallocates = -2\nnames = ["f"]', "for 'allocates'"),
        ('[[group]]\nkind = "pure"\nnames = ["f", "f"]', "listed twice"),
        ('[[group]]\nkind = "pure"\nnames = ["std::*::now"]', "not at the end"),
    ],
)
def test_a_malformed_host_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(TableError, match=re.escape(message)):
        parse_host_table(text)


def test_an_overload_inherits_what_is_not_about_arguments() -> None:
    text = '[f]\nkind = "prefetch"\nreads = [0]\nparameters = 5\nflags = 3\nstream = 4\nnote = "n"\n'
    call = parse_cuda_table(text + "[[f.overloads]]\nparameters = 4\nreads = [0]\nstream = 3\n")["f"]
    (other,) = call.overloads
    assert (other.kind, other.note, other.stream, other.flags) == ("prefetch", "n", 3, None)
