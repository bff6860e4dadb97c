"""The kernels of random programs: what each does to its parameters is in its name, for clang in its body.

``k_rwx`` reads its first parameter, writes the second and updates the third. Other prefixes do the same another way:

- ``p_``: the first two pointers come in a struct
- ``d_``: through device functions that are not inlined
- ``c_``: writes under a condition that depends on the data
- ``a_``: updates with atomics
- ``gr_``, ``gw_``, ``gx_``: the device symbol ``sym`` is read, written or updated, too
- ``t_``: the parameter is a table of pointers in device memory; its pointees are written or updated
"""

from __future__ import annotations

MODES = ("w", "x", "rw", "rx", "xw", "xx", "rrw", "rrx", "rwx", "rxx", "ww")
OTHERS = (
    ("p", ("rw", "xr", "rwx", "wrr", "xxw")),
    ("d", ("rw", "xr", "wx")),
    ("c", ("rx", "xr", "xx")),
    ("a", ("x", "rx", "xx")),
    ("gr", ("w", "rx")),
    ("gw", ("r", "rw")),
    ("gx", ("r", "x")),
)
TABLES = ("t_w", "t_x")
COUNT = 3  # elements of arrays and tables of pointers, iterations of loops over them

DEVICE_FUNCTIONS = """\
struct Pair { float* in; float* out; };
__device__ float sym[1024];
__device__ __noinline__ float fetched(const float* p) { return p[threadIdx.x]; }
__device__ __noinline__ void stored(float* p, float value) { p[threadIdx.x] = value; }
__device__ __noinline__ void changed(float* p, float value) { stored(p, fetched(p) + value); }"""


def kernel(modes: str) -> str:
    """A kernel that does what its name says, in a way that clang can see."""
    names = [f"p{n}" for n in range(len(modes))]
    parameters = ", ".join(f"float* {name}" for name in names)
    reads = " + ".join(["1.0f", *(f"{p}[i]" for p, mode in zip(names, modes, strict=True) if mode == "r")])
    body = " ".join(
        f"{p}[i] {'=' if m == 'w' else '+='} {reads};" for p, m in zip(names, modes, strict=True) if m != "r"
    )
    return f"__global__ void k_{modes}({parameters}) {{ int i = threadIdx.x; {body} }}"


def other(prefix: str, modes: str) -> str:
    """A kernel of another prefix."""
    name = f"{prefix}_{modes}"
    parameters, accesses = signature(name)
    fetch = "fetched({})" if prefix == "d" else "{}[i]"
    reads = ["1.0f", *(fetch.format(p) for p, mode in accesses if mode == "r")]
    lines = [f"float sum = {' + '.join(reads)};"]
    lines += [_change(prefix, p, mode) for p, mode in accesses if mode != "r"]
    return f"__global__ void {name}({parameters}) {{ int i = threadIdx.x; {' '.join(lines)} }}"


def _change(prefix: str, name: str, mode: str) -> str:
    if prefix == "d":
        return f"{'stored' if mode == 'w' else 'changed'}({name}, sum);"
    if prefix == "a":
        return f"atomicAdd({name} + i, sum);"
    condition = f"if ({name}[i] < sum) " if prefix == "c" else ""
    return f"{condition}{name}[i] {'=' if mode == 'w' else '+='} sum;"


def table(name: str) -> str:
    """A kernel that takes a table of pointers."""
    change = f"t[n][i] {'=' if name[-1] == 'w' else '+='} 1.0f;"
    return f"__global__ void {name}(float** t) {{ int i = threadIdx.x; for (int n = 0; n < {COUNT}; ++n) {change} }}"


NAMES = (*(f"k_{m}" for m in MODES), *(f"{prefix}_{m}" for prefix, listed in OTHERS for m in listed), *TABLES)


def signature(name: str) -> tuple[str, list[tuple[str, str]]]:
    """A kernel's parameters, and each pointer that it accesses with its mode."""
    prefix, _, modes = name.rpartition("_")
    if prefix == "t":
        return "float** t", [(f"t[{n}]", modes) for n in range(COUNT)]
    names = [f"p{n}" for n in range(len(modes))]
    parameters = [f"float* {name}" for name in names]
    if prefix == "p":
        names[:2], parameters[:2] = ["p.in", "p.out"], ["Pair p"]
    accesses = list(zip(names, modes, strict=True))
    return ", ".join(parameters), accesses + ([("sym", prefix[1])] if prefix[0] == "g" else [])


ALL = "\n".join(
    [
        *map(kernel, MODES),
        DEVICE_FUNCTIONS,
        *(other(prefix, modes) for prefix, listed in OTHERS for modes in listed),
        *map(table, TABLES),
    ]
)
