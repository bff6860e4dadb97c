"""Weak definitions: the linker may take another file's, so what they do here says nothing about the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.test_soundness_text import BUFFERS, KERNELS, LAUNCHES, function

from kesco.frontend.replaceable import replaceable
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file

WEAK = "__attribute__((weak))"


def compiled(folder: Path, text: str, *flags: str, **headers: str) -> Compilation:
    for name, content in headers.items():
        (folder / f"{name}.h").write_text(content)
    (folder / "app.cu").write_text(KERNELS + text)
    return compile_file(str(folder / "app.cu"), Options(flags=flags))


def with_hook(before: str, hook: str = "void hook(float*) {}", name: str = "hook") -> str:
    """A program with a hook between two launches that nothing else orders."""
    launches = f"  k1<<<1, 64>>>(x);\n  {name}(x);\n  k2<<<1, 64>>>(y);\n{LAUNCHES}"
    return f"{before} {hook}\nint main() {{ {BUFFERS}{launches}}}\n"


def joined_at_the_call(result: Compilation, name: str = "hook") -> bool:
    return f"kesco: {name} sees all of this".encode() in result.text


def test_a_plain_hook_is_looked_into(tmp_path: Path) -> None:
    result = compiled(tmp_path, with_hook(""))
    assert function(result).rewritten
    assert not joined_at_the_call(result)


@pytest.mark.parametrize(
    "before",
    [
        WEAK,
        "[[gnu::weak]]",
        '__attribute__((__noinline__, __weak__, visibility("default")))',
        f"#define WEAK {WEAK}\nWEAK",
        f"#define WEAK {WEAK}\n#define EXPORTED \\\n  WEAK\nEXPORTED",
        "void hook(float*) __attribute__((weak));",
        '#pragma weak hook\nextern "C"',
        '_Pragma("weak hook") extern "C"',
        'extern "C" void hook(float*);\n#pragma weak \\\n  hook\n',
        "#pragma weak _Z4hookPf\n",
        '_Pragma("weak _Z4hookPf")',
    ],
)
def test_a_weak_hook_is_code_that_is_not_seen(tmp_path: Path, before: str) -> None:
    result = compiled(tmp_path, with_hook(before))
    assert function(result).rewritten
    assert joined_at_the_call(result)


def test_a_hook_that_a_header_or_the_command_line_makes_weak(tmp_path: Path) -> None:
    text = '#include "hooks.h"\n' + with_hook("")
    assert joined_at_the_call(compiled(tmp_path, text, hooks=f"void hook(float*) {WEAK};\n"))
    assert joined_at_the_call(compiled(tmp_path, with_hook("WEAK"), f"-DWEAK={WEAK}"))


def test_a_hook_whose_name_a_macro_puts_together(tmp_path: Path) -> None:
    made = f"#define HOOK(name) {WEAK} void hook_##name(float*)\n"
    assert joined_at_the_call(compiled(tmp_path, with_hook(made, "HOOK(one) {}", "hook_one")), "hook_one")


def test_other_functions_of_the_file_are_looked_into(tmp_path: Path) -> None:
    text = f"{WEAK} void other(float*) {{}}\nstatic void own(float*) {{}}\n" + with_hook("", name="own")
    assert not joined_at_the_call(compiled(tmp_path, text), "own")


def test_names_of_the_declarations_with_the_attribute() -> None:
    text = b"void a();\n__attribute__((weak)) void b(int x = 0);\nvoid c() { int weak = 0; }\nstatic void d();"
    found = replaceable([text], [])
    assert [name for name in "abcd" if found(name)] == ["b"]
    assert not any(map(replaceable([b"std::weak_ptr<int> a;"], ["N=1"]), "ab"))
