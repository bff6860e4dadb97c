"""Device LLVM IR → the sizes of each kernel's parameters, which whoever looks at a launch's argument bytes must know.

In: the IR of one translation unit. Out: mangled name → sizes in bytes, in order.
"""

from __future__ import annotations

from kesco.analysis.device_reader import DeviceModule


def kernel_parameters(ir_text: str) -> dict[str, tuple[int, ...]]:
    """The sizes of the parameters of all kernels in the module; `InputError` (K110) if LLVM cannot read it."""
    module = DeviceModule(ir_text)
    return {name: module.parameter_sizes(name) for name in module.kernels}
