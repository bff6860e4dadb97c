"""Functions that other files may call are followed as this file calls them, where no code runs that is not seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.analysis.host.models import Models

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = "#include <initializer_list>\n__global__ void k(float* x) { x[threadIdx.x] += 1; }\nvoid unseen();\n"
WORK = "void work(float* x, float* y) {\n  for (float* one : {x, y}) k<<<1, 32>>>(one);\n}\n"
MEMORY = "  float *a, *b;\n  cudaMalloc(&a, 128), cudaMalloc(&b, 128);\n"
MAIN = "int main(int count, char**) {{\n" + MEMORY + "  work(a, {});\n{}  cudaDeviceSynchronize();\n}}\n"
OBJECT = "  KescoMain kesco_main;  // kesco:"


def compiled(folder: Path, text: str) -> Compiled:
    program = folder / "program.cu"
    program.write_text(HEAD + text)
    return compile_and_keep(program)


def streams(done: Compiled, name: str = "work") -> int:
    one = next((one for one in done.result.functions if one.region.function == name), None)
    one = one or done.function("main")  # of which it is a part
    return one.schedule.streams if one.rewritten else 1


def test_pointers_of_calls_that_are_all_seen_need_no_comparison(tmp_path: Path) -> None:
    done = compiled(tmp_path, WORK + MAIN.format("b", ""))
    assert streams(done) == 2
    assert done.function("work").region.guards == ()
    text = done.result.text.decode()
    assert text.index(OBJECT) < text.index("float *a, *b;")
    assert "if (!KescoMain::runs()) return serial;" in text
    assert done.refuses(done.lines) == ""


def test_one_buffer_under_two_names_is_in_order(tmp_path: Path) -> None:
    done = compiled(tmp_path, WORK + MAIN.format("a", ""))
    assert streams(done) == 1
    both = compiled(tmp_path, WORK + MAIN.format("b", "  work(b, b);\n"))
    assert streams(both) == 1


@pytest.mark.parametrize(
    ("before", "more"),
    [
        ("", "  if (count > 9) unseen();\n"),
        ("", "  reinterpret_cast<void (*)()>(count)();\n"),
        ("#include <dlfcn.h>\n", '  dlopen("libother.so", 1);\n'),
    ],
    ids=["unseen code", "an unknown function", "a library that is loaded"],
)
def test_where_other_code_runs_it_may_call_anything(tmp_path: Path, before: str, more: str) -> None:
    done = compiled(tmp_path, before + WORK + MAIN.format("b", more))
    assert done.function("work").region.guards == ("x", "y")
    assert "KescoMain" not in done.result.text.decode()


@pytest.mark.parametrize("word", ["static ", "inline "])
def test_what_no_other_file_can_call_needs_no_line_in_main(tmp_path: Path, word: str) -> None:
    done = compiled(tmp_path, word + WORK + MAIN.format("b", ""))
    assert streams(done) == 2
    assert "KescoMain" not in done.result.text.decode()


def test_a_static_function_that_an_open_one_calls_is_serial_for_others_too(tmp_path: Path) -> None:
    outer = "void outer(float* x, float* y) { work(x, y); }\n"
    done = compiled(tmp_path, "static " + WORK + outer + MAIN.format("b", "  outer(b, a);\n"))
    assert streams(done) == 2
    assert OBJECT in done.result.text.decode()


def test_the_proof_counts_on_nobody_else_only_where_others_get_the_serial_program(tmp_path: Path) -> None:
    other = compiled(tmp_path, "inline " + WORK + MAIN.format("b", "")).result.text.decode()
    done = compiled(tmp_path, WORK + MAIN.format("b", ""))
    lines = [line for line in done.lines if not line.startswith(OBJECT)]
    assert done.refuses(lines) == ""  # nobody gets streams

    def prologue(text: str) -> str:
        return text[text.index("// ---- kesco: streams") : text.index("// ---- kesco: end")]

    text = "\n".join(lines)
    assert "KescoMain" not in prologue(other)
    assert done.refuses(text.replace(prologue(text), prologue(other)).split("\n"))


# ---- what the library is given


GLOBALS = "#include <sstream>\n#include <fstream>\n#include <string>\nfloat *a, *b;\n"
FILE = "int main(int count, char** words) {{\n  cudaMalloc(&a, 9), cudaMalloc(&b, 9);\n{}  cudaDeviceReset();\n}}\n"


@pytest.mark.parametrize(
    "says",
    [
        "std::ostringstream out; out << count << 2.5f; out.put((char)count);",
        'std::ofstream out(std::string("at") + words[0]); out.put((char)count); out << std::endl;',
        "std::string word; word += (char)count;",
    ],
)
def test_a_number_that_is_printed_leads_to_no_memory(tmp_path: Path, says: str) -> None:
    done = compiled(tmp_path, GLOBALS + FILE.format(f"  {says}\n  k<<<1, 32>>>(a);\n  k<<<1, 32>>>(b);\n"))
    assert streams(done, "main") == 2


def test_a_pointer_that_is_read_from_a_stream_is_not_known(tmp_path: Path) -> None:
    reads = "  std::ifstream in(words[1]);\n  in.read((char*)&a, sizeof a);\n  k<<<1, 32>>>(a);\n  k<<<1, 32>>>(b);\n"
    assert streams(compiled(tmp_path, GLOBALS + FILE.format(reads)), "main") == 1


def test_each_form_of_a_constructor_is_found() -> None:
    string = "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
    found = [Models().of(f"{string}{end}") for end in ("C1Ev", "C2Ev", "D2Ev")]
    assert [one and one.string for one in found] == ["new", "new", "gone"]


CALLED_BACK = [
    "static int less(const void*, const void*) { unseen(); return 0; }|std::qsort(&count, 1, 4, less);",
    "static int less(const void*, const void*) { hook(); return 0; }|std::qsort(&count, 1, 4, less);",
    "static void end() { unseen(); }|std::atexit(end);",
    "struct End { ~End() { unseen(); } };|static End end;",
    "struct End { ~End() { unseen(); } };|static thread_local End end; (void)&end;",
    "static void end() { unseen(); std::abort(); }|std::set_terminate(end);",
    'static void end() { asm volatile("call work" ::: "memory"); }|end();',
]


@pytest.mark.parametrize("code", CALLED_BACK)
def test_what_the_library_runs_may_call_anything_too(tmp_path: Path, code: str) -> None:
    before, more = code.split("|")
    before = f"#include <cstdlib>\n#include <exception>\nextern void (*hook)();\n{before}\n"
    done = compiled(tmp_path, before + WORK + MAIN.format("b", f"  {more}\n"))
    assert "KescoMain" not in done.result.text.decode()


def test_a_main_that_stands_in_front_is_behind_the_prologue(tmp_path: Path) -> None:
    done = compiled(tmp_path, "void work(float*, float*);\n" + MAIN.format("b", "") + WORK)
    text = done.result.text.decode()
    assert streams(done) == 2
    assert text.index("// ---- kesco: end") < text.index(OBJECT)


def test_a_main_whose_brace_is_a_macros_takes_no_line(tmp_path: Path) -> None:
    done = compiled(tmp_path, "#define BEGIN {\n" + WORK + MAIN.format("b", "").replace("**) {", "**) BEGIN"))
    assert "KescoMain" not in done.result.text.decode()


MANIPULATES = (
    "#include <iostream>\nstatic float **kept, *other;\n"
    "static std::ostream& put(std::ostream& out) {\n  *kept = other;\n  return out;\n}\n"
)
PRINTED = (
    "int main() {{\n  float *a, *b;\n  cudaMalloc(&a, 128), cudaMalloc(&b, 128);\n  kept = &b, other = a;\n"
    "  std::cout << {};\n  k<<<1, 32>>>(a);\n  k<<<1, 32>>>(b);\n  cudaDeviceSynchronize();\n}}\n"
)


def test_a_manipulator_of_the_users_runs(tmp_path: Path) -> None:
    assert streams(compiled(tmp_path, MANIPULATES + PRINTED.format("put")), "main") == 1
    assert streams(compiled(tmp_path, MANIPULATES + PRINTED.format("std::endl")), "main") == 2
