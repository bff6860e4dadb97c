"""The user's compile flags in clang's words: `translate` turns nvcc's command line into what clang and libclang take.

In: flags as the user would give them to nvcc or to clang. Out: `UserFlags`, the flags to pass on and the architectures
named. Three things happen to a flag:

1. nvcc's own spelling becomes clang's (``--define-macro X`` → ``-DX``, ``-Xcompiler -Wall,-O3`` → its parts, …);
2. what concerns code generation, linking, outputs or warnings as errors is dropped, for kesco only reads the program;
3. everything else passes through untouched, so an unknown flag gets clang's own message.

The flags are tables here, not branches, so that a missing one is one line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# nvcc's long options that take a value, as `--name value` or `--name=value`, and the clang flag they become.
_RENAMED = {
    "--define-macro": "-D",
    "--include-path": "-I",
    "--pre-include": "-include",
    "--system-include": "-isystem",
    "--undefine-macro": "-U",
    "--std": "-std=",
    "-std": "-std=",
    "--ftemplate-depth": "-ftemplate-depth=",
    "-ftemplate-depth": "-ftemplate-depth=",
}
_ARCHITECTURE = set("--generate-code -gencode --gpu-architecture -arch --cuda-gpu-arch --offload-arch".split())
_FOR_HOST_COMPILER = {"--compiler-options", "-Xcompiler"}

# Dropped together with their value, which follows either as the next argument or after '='.
_DROPPED_WITH_VALUE = set(
    """
    --archive-options --archiver-options -Xarchive --compiler-bindir -ccbin --cudadevrt -cudadevrt --cudart -cudart
    --cudafe-options -Xcudafe --fatbinary-options -Xfatbinary --dependency-output --dependency-target-name -MF -MQ -MT
    --diag-error --diag-suppress --diag-warn -diag-error -diag-suppress -diag-warn --dopt -dopt --fmad -fmad
    --ftz -ftz --gpu-code -code --keep-dir -keep-dir --library --library-path --linker-options -Xlinker
    --machine --maxrregcount -maxrregcount --nvlink-options -Xnvlink --optimize --optimization-info -opt-info
    --output-directory -odir --output-file -o --prec-div -prec-div --prec-sqrt -prec-sqrt --ptxas-options -Xptxas
    --split-compile -split-compile --threads -t --time -time --x -x
    --archiver-binary -arbin --brief-diagnostics -brief-diag --compress-mode -compress-mode
    --dependency-drive-prefix -ddp --device-entity-has-hidden-visibility -device-entity-has-hidden-visibility
    --device-stack-protector -device-stack-protector --drive-prefix -dp --entries -e --frandom-seed -frandom-seed
    --fdevice-time-trace -fdevice-time-trace --ftemplate-backtrace-limit -ftemplate-backtrace-limit
    --host-linker-script -hls --input-drive-prefix -idp --jump-table-density -jtd --libdevice-directory -ldir
    --Ofast-compile -Ofc --options-file -optf --qpp-config -qpp-config --run-args -run-args --sanitize -sanitize
    --split-compile-extended -split-compile-extended --static-global-template-stub -static-global-template-stub
    --target-directory -target-dir -l -L -m
    """.split()
)
_DROPPED = set(
    """
    --compile -c --cubin -cubin --cuda -cuda --device-link -dlink --debug --device-debug -G --dlink-time-opt -dlto
    --display-error-number --no-display-error-number -no-display-error-number --dryrun -dryrun
    --expt-extended-lambda -expt-extended-lambda --extended-lambda -extended-lambda
    --expt-relaxed-constexpr -expt-relaxed-constexpr --extra-device-vectorization -extra-device-vectorization
    --fatbin -fatbin --forward-unknown-to-host-compiler -forward-unknown-to-host-compiler
    --generate-dependencies -M -MD -MM -MMD -MP --generate-line-info --keep -keep --lib -lib --link --preprocess -E
    --ptx -ptx --resource-usage -res-usage --restrict -restrict --run -run --shared -shared -S -static -m64
    --source-in-ptx -src-in-ptx --verbose -v -pedantic-errors --Wno-deprecated-gpu-targets
    -Wno-deprecated-gpu-targets --Wreorder --Wdefault-stream-launch -Wdefault-stream-launch
    -Wext-lambda-captures-this --Wext-lambda-captures-this --Wmissing-launch-bounds -Wmissing-launch-bounds -Wreorder
    --Wno-deprecated-declarations --allow-unsupported-compiler -allow-unsupported-compiler
    --augment-host-linker-script -aug-hls --clean-targets -clean --compile-as-tools-patch -astoolspatch
    --device-w -dw -err-no -no-err-no --dont-use-profile -noprof --extensible-whole-program -ewp
    --fdevice-syntax-only -fdevice-syntax-only --force-cl-env-setup -force-cl-env-setup
    --forward-unknown-to-host-linker -forward-unknown-to-host-linker --forward-unknown-opts -forward-unknown-opts
    --gen-opt-lto -gen-opt-lto --generate-dependency-targets --generate-dependencies-with-compile
    --generate-nonsystem-dependencies --generate-nonsystem-dependencies-with-compile --jobserver -jobserver
    --keep-device-functions -keep-device-functions --lto --ltoir --m64 --no-align-double --no-compress -no-compress
    --no-device-link -nodlink --no-host-device-initializer-list -nohdinitlist --no-host-device-move-forward
    -nohdmoveforward --objdir-as-tempdir -objtemp --optix-ir -optix-ir --profile -pg --relocatable-link -r
    --relocatable-ptx -reloc-ptx --save-temps -save-temps --use-local-env -use-local-env
    """.split()
)
# -g and -l also cover -gline-tables-only, -lineinfo, -link and the like; -gencode was taken before.
_DROPPED_PREFIXES = ("-L", "-l", "-Wl,", "-Werror", "-O", "--Werror", "-g", "-MF", "-MT", "-MQ", "-o")
_REPLACED = {
    "--disable-warnings": "-w",
    "--use_fast_math": "-ffast-math",
    "-use_fast_math": "-ffast-math",
    "--no-exceptions": "-fno-exceptions",
    "-noeh": "-fno-exceptions",
    "--device-c": "-fgpu-rdc",
    "-dc": "-fgpu-rdc",
}
_RELOCATABLE = {"--relocatable-device-code", "-rdc"}
_DEFAULT_STREAM = {"--default-stream", "-default-stream"}
_PER_THREAD = "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"
_THREADS = re.compile(r"-t=?\d+")
# What nvcc's -Werror may be followed by; any other next argument is not its value.
_WERROR_KINDS = set(
    """
    all-warnings cross-execution-space-call reorder default-stream-launch deprecated-declarations missing-launch-bounds
    ext-lambda-captures-this
    """.split()
)
# Flags of clang and gcc that take the next argument as their value and pass through with it.
_PASSED_WITH_VALUE = {
    *(
        "-I",
        "-D",
        "-U",
        "-include",
        "-isystem",
        "-iquote",
        "-idirafter",
        "-imacros",
        "--sysroot",
        "-isysroot",
    ),
    *("-Xclang", "-Xarch_host", "-Xarch_device", "-target"),
}


@dataclass(frozen=True, slots=True)
class UserFlags:
    """The user's flags for clang, and the architectures (``sm_80``) they name, highest first."""

    passed: tuple[str, ...]
    architectures: tuple[str, ...]

    def has(self, *prefixes: str) -> bool:
        """Whether a passed flag starts with one of these."""
        return any(flag.startswith(prefixes) for flag in self.passed)


def translate(flags: Sequence[str]) -> UserFlags:
    """The user's flags in clang's words."""
    architectures: list[str] = []
    passed = tuple(_translate(list(flags), architectures))
    ordered = sorted(dict.fromkeys(architectures), key=lambda arch: int(re.sub(r"\D", "", arch)), reverse=True)
    return UserFlags(passed, tuple(ordered))


def _translate(flags: list[str], architectures: list[str]) -> Iterator[str]:
    """Yield clang's flags; architectures go to the list, since nvcc has many ways to name several."""
    position = 0
    while position < len(flags):
        flag = flags[position]
        name, equals, inline = flag.partition("=")
        following = flags[position + 1] if position + 1 < len(flags) else ""
        value = inline if equals else following
        used = 1 if equals else 2

        if name in _ARCHITECTURE:
            # Of `arch=compute_70,code=sm_86` the first part is what the source is compiled for.
            virtual = value.split(",code=")[0]
            architectures += [f"sm_{number}" for number in re.findall(r"(?:sm|compute)_(\d{2,3}[af]?)", virtual)]
        elif name in _FOR_HOST_COMPILER:
            yield from _translate([w for part in value.split(",") for w in _in_a_shell(part)], architectures)
        elif name in _RENAMED:
            joined = _RENAMED[name]
            yield from (joined, value) if joined in ("-include", "-isystem") else (joined + value,)
        elif name in _RELOCATABLE:
            yield from ("-fgpu-rdc",) if value == "true" else ()
        elif name in _DEFAULT_STREAM:
            yield from (_PER_THREAD,) if value == "per-thread" else ()
        elif name in _DROPPED_WITH_VALUE:
            pass
        else:
            used = 1
            if flag in _PASSED_WITH_VALUE:
                yield from flags[position : position + 2]
                used = 2
            elif flag in _REPLACED:
                yield _REPLACED[flag]
            elif (flag == "-O" and following.isdigit()) or (
                flag in ("-Werror", "--Werror") and following.split(",")[0] in _WERROR_KINDS
            ):
                used = 2
            elif flag not in _DROPPED and not _THREADS.fullmatch(flag) and not flag.startswith(_DROPPED_PREFIXES):
                yield flag
        position += used


def _in_a_shell(text: str) -> list[str]:
    """The words that a shell makes of a text, as nvcc has one do with what is for the host compiler."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text]
