"""Mutants of correct outputs: what goes wrong on paper is refused by the proof and reported by `kesco check`.

A few here; ``python scripts/hunt.py --mutate 1 --check 1`` does as many as wanted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.judged import Judge
from property.mutations import ACTIONS, Mutant, batches, mutants, mutated, owners, selectable
from property.oracle import RUNS, letter, options_of, programs_of
from property.programs import text_of
from property.runnable import INPUT, built, dry, observed

from kesco.options import Options
from kesco.proving import verify_files
from tests.taken import THOROUGH

FILE, MOST = 5001, 5 if THOROUGH else 3

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    path = tmp_path_factory.mktemp("mutations") / "serial.cu"
    path.write_text(text_of(programs_of(FILE)))
    return compile_and_keep(path, options_of(FILE))


def test_what_goes_wrong_is_noticed(compiled: Compiled, tmp_path: Path) -> None:
    chosen = batches(mutants(compiled.lines), MOST, FILE)
    names = [one.name for one in programs_of(FILE)]
    program = built(dry("\n".join(selectable(compiled.lines, chosen)), names), Options(), tmp_path)
    assert observed(program).diagnostics == (), "the output itself has no race"
    judge = Judge(compiled, program)
    judged = [one for number, batch in enumerate(chosen) for one in judge.batch(number, batch)]
    assert [f"{one.missed} missed {one.mutant}: {one.wrong}" for one in judged if one.missed] == []
    assert judge.invalid == []
    assert sum(bool(one.wrong) for one in judged) >= 5, "a test in which nothing goes wrong tests nothing"
    assert sum(one.reached for one in judged) >= 5
    assert any(not one.refused and not one.reported for one in judged), "nor one where everything does"


@pytest.mark.thorough
def test_the_command_refuses_what_the_proof_refuses(compiled: Compiled, tmp_path: Path) -> None:
    """`kesco verify` reads both files anew; the others here share one session."""
    judge, serial = Judge(compiled), tmp_path / "serial.cu"
    serial.write_bytes(compiled.result.source)
    removed = next(one for one in mutants(compiled.lines) if (one.target, one.action) == ("wait", "remove"))
    for chosen in ([], [removed]):
        concurrent = tmp_path / f"concurrent{len(chosen)}.cu"
        concurrent.write_text("\n".join(mutated(compiled.lines, chosen)))
        verdicts = verify_files(str(serial), str(concurrent), Options())
        unordered = {one.function for one in verdicts if any(p.code == "K401" for p in one.problems)}
        assert bool(unordered) == bool(chosen)
        assert all(function.startswith(one.program) for function in unordered for one in chosen)
    assert judge.refused(mutated(compiled.lines, [removed])).keys() == {removed.program}


def test_every_action_is_tried_on_every_target(compiled: Compiled) -> None:
    found = {(one.target, one.action) for one in mutants(compiled.lines)}
    assert found == {(t, a) for t in ("record", "wait", "join record", "join") for a in ACTIONS}


def test_mutants_keep_the_lines(compiled: Compiled) -> None:
    lines = compiled.lines
    for one in mutants(lines):
        changed = mutated(lines, [one])
        assert len(changed) == len(lines)
        assert changed != lines
        assert owners(changed) == owners(lines)


TEXT = """\
  cudaStream_t stream[3] = {};
  KescoEvent done[2] = {};
  cudaEvent_t tail[3] = {};
// ---- kesco: end ----
int main() {
  a<<<1, 32, 0, kesco->stream[0]>>>(x);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: b waits for this
  for (int i = 0; i < 3; ++i)
    c<<<1, 32, 0, kesco->stream[1]>>>(y);
  if (i > 0) cudaStreamWaitEvent(kesco->stream[i + 1], kesco->done[0], 0);  // kesco: wait for a
  b<<<1, 32, 0, kesco->stream[1]>>>(x);
  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: the caller
  return 0;
}"""


@pytest.mark.parametrize(
    ("line", "action", "changed"),
    [
        (6, "remove", {6: ";"}),
        (6, "up", {5: TEXT.split("\n")[6], 6: TEXT.split("\n")[5]}),
        (6, "event", {6: "  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: b waits for this"}),
        (6, "stream", {6: "  cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: b waits for this"}),
        (9, "stream", {9: TEXT.split("\n")[9].replace("[i + 1]", "[(i + 1 + 1) % 3]")}),
        (9, "down", {9: TEXT.split("\n")[10], 10: TEXT.split("\n")[9]}),
        (11, "stream", {11: "  cudaStreamWaitEvent(kesco->stream[2], kesco->tail[1], 0);  // kesco: the caller"}),
        (11, "event", {11: "  cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[2], 0);  // kesco: the caller"}),
    ],
)  # fmt: skip
def test_a_mutant_is_what_its_name_says(line: int, action: str, changed: dict[int, str]) -> None:
    lines = TEXT.split("\n")
    one = next(m for m in mutants(lines) if (m.line, m.action) == (line, action))
    result = mutated(lines, [one])
    assert {n: b for n, (a, b) in enumerate(zip(lines, result, strict=True)) if a != b} == changed


def test_nothing_is_moved_out_of_its_block_or_into_an_unbraced_body() -> None:
    moves = {(m.line, m.action) for m in mutants(TEXT.split("\n")) if m.action in ("up", "down")}
    assert moves == {(6, "up"), (9, "down"), (11, "up")}


def test_one_text_takes_on_each_mutant() -> None:
    lines = TEXT.split("\n")
    wait = [m for m in mutants(lines) if m.line == 9]
    text = selectable(lines, [[one] for one in wait])
    names = [one.action for one in wait]
    remove, down, event, stream = (names.index(a) for a in ("remove", "down", "event", "stream"))
    assert text[9] == (
        f"  if (kesco_mutant != {remove} && kesco_mutant != {down}) if (i > 0) cudaStreamWaitEvent(kesco->stream["
        f"kesco_mutant == {stream} ? (i + 1 + 1) % 3 : i + 1], kesco->done[kesco_mutant == {event} ? 1 : 0], 0);"
    )
    assert text[10].startswith("b<<<1, 32, 0, kesco->stream[1]>>>(x); if (kesco_mutant == ")
    assert text[:9] + text[11:] == lines[:9] + lines[11:]


def test_batches_have_one_mutant_of_a_program() -> None:
    found = [Mutant(n, "wait", "remove", f"program{n % 3}") for n in range(10)]
    made = batches(found, 3, 0)
    assert [len({one.program for one in batch}) for batch in made] == [3, 3, 3]
    assert all(len(batch) == 3 for batch in made)


def test_dry_runs_get_the_inputs_of_the_oracle(toolchain: object, tmp_path: Path) -> None:
    """The formula stands in two languages."""
    letters = "".join(letter(run, i, j) for run in range(RUNS) for i in range(40) for j in range(4))
    assert set(letters) == {"y", "n"}
    path = tmp_path / "inputs.cu"
    checks = f'const char* expected = "{letters}";\nint main() {{ unsigned at = 0;\n'
    checks += f"for (unsigned run = 0; run < {RUNS}; ++run) {{ Input input(run);\n"
    checks += "for (int i = 0; i < 40; ++i) for (int j = 0; j < 4; ++j)\n"
    checks += (
        "if (input.argv[i][j] != expected[at++]) return 1; }\nfloat* p; cudaMalloc(&p, 4); cudaMemset(p, 0, 4); }\n"
    )
    path.write_text(INPUT + checks)
    report = observed(built(path.read_text(), Options(), tmp_path))
    assert report.diagnostics == ()
