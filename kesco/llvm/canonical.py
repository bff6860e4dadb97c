"""LLVM itself, through llvmlite: a text → the same module in LLVM's one spelling, verified, after passes.

In: text as a compiler printed it. Out: text that `module` reads. The only place that knows llvmlite.

The host side gets SROA alone. CFG simplification makes one call of two, combining makes integers of pointers, constant
propagation takes launches away: none of them helps, each loses a place or a fact.
"""

from __future__ import annotations

from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError


def canonical(text: str, side: str, *, sroa: bool = False) -> str:
    """The module as LLVM prints it; raises `InputError` (K110) where LLVM rejects it. `side`: device or host."""
    import llvmlite.binding as llvm  # takes 50 ms, which only a run that has something to analyse should pay

    try:
        # A context of its own, else names of types differ from one module to the next. All is closed in this order.
        with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
            module.verify()
            if sroa:
                _run_sroa(llvm, module)
            return str(module)
    except RuntimeError as error:
        message = f"LLVM cannot read the {side} code: {' '.join(str(error).split())}"
        advice = "use a clang whose LLVM is not newer than llvmlite's"
        raise InputError(Diagnostic("K110", Severity.ERROR, message, help=advice)) from error


def _run_sroa(llvm: Any, module: Any) -> None:
    llvm.initialize_all_targets()
    target = llvm.Target.from_triple(module.triple)
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    with (
        target.create_target_machine(opt=1) as machine,
        llvm.create_pass_builder(machine, options) as builder,
        llvm.create_new_module_pass_manager() as passes,
    ):
        passes.add_sroa_pass()
        passes.run(module, builder)
