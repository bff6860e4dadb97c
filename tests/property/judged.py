"""What the checkers say of mutants, and what is true of them.

In: a compiled file, batches of mutants, and the same as one program for dry runs. Out: a `Judged` for each mutant.
The paper oracle decides what is wrong: it runs each mutant with all inputs. `verify` must refuse every one that is
wrong; `kesco check` must report every one that is wrong by its own rules, in these runs with all streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from integration.compiled import Compiled
from property.mutations import Mutant, mutated, owners
from property.oracle import differences, executions
from property.replay import Machine, Parser
from property.runnable import lines_of, observed

from kesco import proving
from kesco.check import Prepared
from kesco.check.messages import CERTAIN, POSSIBLE
from kesco.errors import VerificationError


@dataclass(frozen=True)
class Judged:
    """`wrong`: what the oracle has against it; `reached`: whether it is wrong by the rules of `kesco check`, too.

    `refused`: what the proof has against it; `reported`: "race", "possible" or nothing, None where nothing was run.
    """

    mutant: Mutant
    wrong: str
    reached: bool
    refused: str
    reported: str | None

    @property
    def missed(self) -> str:
        """Which checker did not see what it had to see."""
        names = ["verify"] * bool(self.wrong and not self.refused)
        names += ["check"] * bool(self.reached and self.reported == "")
        return " and ".join(names)


class Judge:
    """Judges mutants of one file."""

    def __init__(self, compiled: Compiled, dry: Prepared | None = None) -> None:
        self.compiled, self.dry = compiled, dry
        self.lines = compiled.lines
        self.owner = owners(self.lines)
        self.serial: Parser | None = None
        self.expected: dict[str, list[Machine]] = {}
        self.invalid: list[Mutant] = []

    def batch(self, number: int, mutants: list[Mutant]) -> Iterator[Judged]:
        """A batch of mutants, which has this number in the dry run; those that do not compile are left out."""
        lines = mutated(self.lines, mutants)
        refused = self.refused(lines)
        if refused is None:
            alone = {one: self.refused(mutated(self.lines, [one])) for one in mutants}
            self.invalid += [one for one, found in alone.items() if found is None]
            mutants = [one for one in mutants if one not in self.invalid]
            refused = {one.program: (alone[one] or {}).get(one.program, "") for one in mutants}
            lines = mutated(self.lines, mutants)
        reported = self.reported(number)
        parsed = Parser("\n".join(lines))
        for one in mutants:
            wrong = self.wrong(parsed, one.program)
            reached = reported is not None and bool(self.wrong(parsed, one.program, generous=True))
            words = None if reported is None else reported.get(one.program, "")
            yield Judged(one, wrong, reached, refused.get(one.program, ""), words)

    def wrong(self, parsed: Parser, program: str, generous: bool = False) -> str:
        """What the oracle has against a program."""
        self.serial = self.serial or Parser(self.compiled.result.source.decode())
        if program not in self.expected:
            self.expected[program] = list(executions(self.serial, program))
        return next(differences(self.expected[program], executions(parsed, program, generous=generous)), "")

    def refused(self, lines: list[str]) -> dict[str, str] | None:
        """What the proof has against the programs of a text; None where it does not compile."""
        found: dict[str, str] = {}
        try:
            proving.verify(self.compiled.session, self.compiled.result.functions, "\n".join(lines).encode())
        except VerificationError as error:
            for one in error.diagnostics:
                if "does not compile" in one.message:
                    return None
                if one.code == "K401" and one.span is not None:
                    program = self.owner[one.span.line - 1]
                else:  # the message begins with the function's name
                    name = one.message.partition(":")[0]
                    program = next((p for p in sorted(set(self.owner), reverse=True) if p and name.startswith(p)), name)
                found.setdefault(program, one.message)
        return found

    def reported(self, number: int) -> dict[str, str] | None:
        """Which programs have races in the dry run of a batch."""
        if self.dry is None:
            return None
        found: dict[str, str] = {}
        for one in observed(self.dry, number).diagnostics:
            words = "race" if one.code in CERTAIN else "possible" if one.code == POSSIBLE else ""
            for line in lines_of(one):
                if words and line < len(self.owner) and self.owner[line] and found.get(self.owner[line]) != "race":
                    found[self.owner[line]] = words
        return found
