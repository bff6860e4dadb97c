"""Kernel effects from device IR: one small kernel for each thing a kernel can do to memory.

The IR is what clang 22 prints at -O1 for the CUDA that each kernel's name hints at, less the attributes on which the
analysis must not rely anyway (`readonly`, `captures`, ...), so a kernel whose name says ``const`` carries no such hint.
"""

from __future__ import annotations

import time

import pytest

from kesco.analysis.device_calls import Behaviour, Touch, assembly_behaviour, callee_behaviour
from kesco.analysis.effects import kernel_effects
from kesco.errors import InputError
from kesco.ir.access import AccessMode
from kesco.ir.effects import KernelEffects, RootEffect
from kesco.llvm.names import display_name

R, W, RW = AccessMode.READ, AccessMode.WRITE, AccessMode.READ_WRITE

PRELUDE = """
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
%struct.S = type { ptr, ptr, i32 }
%struct.Ctx = type { ptr, ptr, ptr }
%union.U = type { i64 }
%printf_args = type { double, ptr }
%printf_args.0 = type { ptr }
declare void @_Z3extPf(ptr)
declare void @__assertfail(ptr, ptr, i32, ptr, i64)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @vprintf(ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.nvvm.ex2.approx.f32(float) memory(none)
declare i64 @llvm.nvvm.read.ptx.sreg.clock64() memory(inaccessiblemem: readwrite)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() memory(none)
"""


def told(kernel: KernelEffects) -> str:
    """Effects in one line: ``param[+offset]:direct[/deep]``, ``symbol:…``, ``!order``, ``?reason for being opaque``."""
    words = [
        f"{p.index}{f'+{offset}' if offset else ''}:{_modes(effect)}"
        for p in kernel.params
        for offset, effect in p.fields
    ]
    words += [f"{name}:{_modes(effect)}" for name, effect in kernel.symbols]
    words += [f"!{order}" for order in sorted(kernel.order)]
    return " ".join([*words, f"?{kernel.opaque}"] if kernel.opaque else words)


def _modes(effect: RootEffect) -> str:
    return effect.direct.text if not effect.deep else f"{effect.direct.text}/{effect.deep.text}"


def effects_of(ir: str) -> str:
    """What the only kernel of some IR does."""
    (kernel,) = kernel_effects(PRELUDE + ir)
    return told(kernel)


# name: what it does, and its IR
KERNELS = {
    # a parameter that is only read counts as read, const or not
    "ro": (
        "0:r 1:r 2:w",
        """
define ptx_kernel void @_Z2roPfPKfS_(ptr %0, ptr %1, ptr %2) {
  %4 = load float, ptr %0
  %5 = load float, ptr %1
  %6 = fadd float %4, %5
  store float %6, ptr %2
  ret void
}
""",
    ),
    "inplace": (
        "0:rw",
        """
define ptx_kernel void @_Z7inplacePf(ptr %0) {
  %2 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %3 = zext i32 %2 to i64
  %4 = getelementptr float, ptr %0, i64 %3
  %5 = load float, ptr %4
  %6 = fadd float %5, 1.000000e+00
  store float %6, ptr %4
  ret void
}
""",
    ),
    "atom": (
        "0:rw 1:w 2:rw 3:rw",
        """
define ptx_kernel void @_Z4atomPiS_S_S_(ptr %0, ptr %1, ptr %2, ptr %3) {
  %5 = atomicrmw add ptr %0, i32 1 seq_cst
  store i32 %5, ptr %1
  %6 = cmpxchg ptr %2, i32 1, i32 2 seq_cst seq_cst
  %7 = atomicrmw xchg ptr %3, i32 4 seq_cst
  ret void
}
""",
    ),
    # two calls of one device function stay apart
    "helper": (
        "0:w 1:r 2:w 3:r",
        """
define ptx_kernel void @_Z6helperPfS_S_S_(ptr %0, ptr %1, ptr %2, ptr %3) {
  call void @_Z5copy1PfPKf(ptr %0, ptr %1)
  call void @_Z5copy1PfPKf(ptr %2, ptr %3)
  ret void
}
define void @_Z5copy1PfPKf(ptr %0, ptr %1) {
  %3 = load float, ptr %1
  store float %3, ptr %0
  ret void
}
""",
    ),
    # a template
    "scale": (
        "0:rw",
        """
define ptx_kernel void @_ZN2ns5scaleIfEEvPT_S1_(ptr %0, float %1) {
  %3 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = zext i32 %3 to i64
  %5 = getelementptr float, ptr %0, i64 %4
  %6 = load float, ptr %5
  %7 = fmul float %1, %6
  store float %7, ptr %5
  ret void
}
""",
    ),
    # dynamic shared memory is the kernel's own
    "shm": (
        "0:r 1:w",
        """
@s = external addrspace(3) global [0 x float]
define ptx_kernel void @_Z3shmPKfPf(ptr %0, ptr %1) {
  %3 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = zext i32 %3 to i64
  %5 = getelementptr float, ptr %0, i64 %4
  %6 = load float, ptr %5
  %7 = getelementptr float, ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 %4
  store float %6, ptr %7
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %8 = load float, ptr getelementptr (i8, ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 4)
  store float %8, ptr %1
  ret void
}
""",
    ),
    # the fields of a structure passed by value
    "sval": (
        "0:r 0+8:w",
        """
define ptx_kernel void @_Z4sval1S(ptr byval(%struct.S) %0) {
  %2 = load ptr, ptr %0
  %3 = load float, ptr %2
  %4 = getelementptr i8, ptr %0, i64 8
  %5 = load ptr, ptr %4
  store float %3, ptr %5
  ret void
}
""",
    ),
    # a field chosen at run time may be any
    "sdyn": (
        "0:w 0+8:w",
        """
define ptx_kernel void @_Z4sdyn1Si(ptr byval(%struct.S) %0, i32 %1) {
  %3 = sext i32 %1 to i64
  %4 = getelementptr ptr, ptr %0, i64 %3
  %5 = load ptr, ptr %4, !tbaa !0
  store float 1.000000e+00, ptr %5
  ret void
}
!0 = !{!1, !1, i64 0}
!1 = !{!"p1 float", !2, i64 0}
!2 = !{!"any pointer", !3, i64 0}
!3 = !{!"omnipotent char", !4, i64 0}
!4 = !{!"Simple C++ TBAA"}
""",
    ),
    # a local structure of pointers, handed on by reference
    "sref": (
        "0:r 1:w",
        """
define ptx_kernel void @_Z4srefPfS_(ptr %0, ptr %1) {
  %3 = alloca %struct.S
  store ptr %0, ptr %3
  %4 = getelementptr i8, ptr %3, i64 8
  store ptr %1, ptr %4
  %5 = getelementptr i8, ptr %3, i64 16
  store i32 0, ptr %5
  call void @_Z5byrefRK1S(ptr %3)
  ret void
}
define void @_Z5byrefRK1S(ptr %0) {
  %2 = load ptr, ptr %0
  %3 = load float, ptr %2
  %4 = getelementptr i8, ptr %0, i64 8
  %5 = load ptr, ptr %4
  store float %3, ptr %5
  ret void
}
""",
    ),
    # a structure handed on by value
    "sbyv": (
        "0:r 0+8:w",
        """
define ptx_kernel void @_Z4sbyv1S(ptr byval(%struct.S) %0) {
  call void @_Z3byv1S(ptr byval(%struct.S) %0)
  ret void
}
define void @_Z3byv1S(ptr byval(%struct.S) %0) {
  %2 = load ptr, ptr %0
  %3 = load float, ptr %2
  %4 = getelementptr i8, ptr %0, i64 8
  %5 = load ptr, ptr %4
  store float %3, ptr %5
  ret void
}
""",
    ),
    # a structure of pointers copied out of global memory
    "mcp": (
        "0:r/rw",
        """
define ptx_kernel void @_Z3mcpP1SPf(ptr %0, ptr %1) {
  %3 = alloca %struct.S
  call void @llvm.memcpy.p0.p0.i64(ptr %3, ptr %0, i64 24, i1 false)
  call void @_Z5byrefRK1S(ptr %3)
  ret void
}
define void @_Z5byrefRK1S(ptr %0) {
  %2 = load ptr, ptr %0
  %3 = load float, ptr %2
  %4 = getelementptr i8, ptr %0, i64 8
  %5 = load ptr, ptr %4
  store float %3, ptr %5
  ret void
}
""",
    ),
    "pp": (
        "0:r/w 1:r/r",
        """
define ptx_kernel void @_Z2ppPPfS0_(ptr %0, ptr %1) {
  %3 = getelementptr i8, ptr %1, i64 8
  %4 = load ptr, ptr %3
  %5 = load float, ptr %4
  %6 = load ptr, ptr %0
  %7 = getelementptr i8, ptr %6, i64 4
  store float %5, ptr %7
  ret void
}
""",
    ),
    # pointers at any depth
    "list": (
        "0:rw/rw",
        """
define ptx_kernel void @_Z4listP3Ctx(ptr %0) {
  %2 = icmp eq ptr %0, null
  br i1 %2, label %9, label %3
3:
  %4 = phi ptr [ %7, %3 ], [ %0, %1 ]
  %5 = getelementptr i8, ptr %4, i64 8
  store ptr null, ptr %5
  %6 = getelementptr i8, ptr %4, i64 16
  %7 = load ptr, ptr %6
  %8 = icmp eq ptr %7, null
  br i1 %8, label %9, label %3
9:
  ret void
}
""",
    ),
    # device and constant symbols; a pointer kept in one
    "syms": (
        "0:r c:r g:w gp:r/w",
        """
@c = addrspace(4) externally_initialized constant [4 x float] zeroinitializer
@g = addrspace(1) externally_initialized global float 0.000000e+00
@gp = addrspace(1) externally_initialized global ptr null
define ptx_kernel void @_Z4symsPf(ptr %0) {
  %2 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %3 = zext i32 %2 to i64
  %4 = getelementptr float, ptr addrspacecast (ptr addrspace(4) @c to ptr), i64 %3
  %5 = load float, ptr %4
  store float %5, ptr addrspacecast (ptr addrspace(1) @g to ptr)
  %6 = load float, ptr %0
  %7 = load ptr, ptr addrspacecast (ptr addrspace(1) @gp to ptr)
  store float %6, ptr %7
  ret void
}
""",
    ),
    # what a symbol's initializer points to, before the host changes it
    "tabs": (
        "buf:w tab:r/w",
        """
@tab = addrspace(1) externally_initialized global ptr addrspacecast (ptr addrspace(1) @buf to ptr)
@buf = addrspace(1) externally_initialized global [4 x float] zeroinitializer
define ptx_kernel void @_Z4tabsi(i32 %0) {
  %2 = load ptr, ptr addrspacecast (ptr addrspace(1) @tab to ptr)
  store float 1.000000e+00, ptr %2
  ret void
}
""",
    ),
    # a constant table of pointers is no memory that anyone could change
    "ctabs": (
        "buf:w g:w",
        """
@_ZL4ctab = internal addrspace(4) constant [2 x ptr] [
  ptr addrspacecast (ptr addrspace(1) @buf to ptr), ptr addrspacecast (ptr addrspace(1) @g to ptr)]
@buf = addrspace(1) externally_initialized global [4 x float] zeroinitializer
@g = addrspace(1) externally_initialized global float 0.000000e+00
define ptx_kernel void @_Z5ctabsi(i32 %0) {
  %2 = sext i32 %0 to i64
  %3 = getelementptr ptr, ptr addrspacecast (ptr addrspace(4) @_ZL4ctab to ptr), i64 %2
  %4 = load ptr, ptr %3
  store float 1.000000e+00, ptr %4
  ret void
}
""",
    ),
    # printing a pointer does not read what it points to
    "pr": (
        "0:r !printf",
        r"""
@.str = private constant [7 x i8] c"%f %p\0A\00"
define ptx_kernel void @_Z2prPfPKc(ptr %0, ptr %1) {
  %3 = alloca %printf_args
  %4 = load float, ptr %0
  %5 = fpext float %4 to double
  store double %5, ptr %3
  %6 = getelementptr i8, ptr %3, i64 8
  store ptr %0, ptr %6
  %7 = call i32 @vprintf(ptr @.str, ptr %3)
  ret void
}
""",
    ),
    # printing a string does
    "prs": (
        "0:r !printf",
        r"""
@.str1 = private constant [4 x i8] c"%s\0A\00"
define ptx_kernel void @_Z3prsPKc(ptr %0) {
  %2 = alloca %printf_args.0
  store ptr %0, ptr %2
  %3 = call i32 @vprintf(ptr @.str1, ptr %2)
  ret void
}
""",
    ),
    "as": (
        "0:r !assert",
        r"""
@.str2 = private constant [5 x i8] c"x[0]\00"
@.str3 = private constant [5 x i8] c"j.cu\00"
@__PRETTY_FUNCTION__._Z2asPi = private constant [15 x i8] c"void as(int *)\00"
define ptx_kernel void @_Z2asPi(ptr %0) {
  %2 = load i32, ptr %0
  %3 = icmp eq i32 %2, 0
  br i1 %3, label %4, label %5
4:
  call void @__assertfail(ptr @.str2, ptr @.str3, i32 26, ptr @__PRETTY_FUNCTION__._Z2asPi, i64 1)
  br label %5
5:
  ret void
}
""",
    ),
    # device memory that does not leave the kernel
    "ml": (
        "0:rw !heap",
        """
define ptx_kernel void @_Z2mlPfi(ptr %0, i32 %1) {
  %3 = sext i32 %1 to i64
  %4 = call ptr @malloc(i64 %3)
  %5 = load float, ptr %0
  %6 = sdiv i32 %1, 2
  %7 = sext i32 %6 to i64
  %8 = getelementptr float, ptr %4, i64 %7
  store float %5, ptr %8
  %9 = sdiv i32 %1, 3
  %10 = sext i32 %9 to i64
  %11 = getelementptr float, ptr %4, i64 %10
  %12 = load float, ptr %11
  %13 = getelementptr i8, ptr %0, i64 4
  store float %12, ptr %13
  call void @free(ptr %4)
  ret void
}
""",
    ),
    "mlesc": (
        "0:w !heap ?stores a pointer into memory",
        """
define ptx_kernel void @_Z5mlescPPfi(ptr %0, i32 %1) {
  %3 = sext i32 %1 to i64
  %4 = call ptr @malloc(i64 %3)
  store ptr %4, ptr %0
  ret void
}
""",
    ),
    "ck": (
        "0:w !clock",
        """
define ptx_kernel void @_Z2ckPx(ptr %0) {
  %2 = call i64 @llvm.nvvm.read.ptx.sreg.clock64()
  store i64 %2, ptr %0
  ret void
}
""",
    ),
    "un": (
        "!unseen ?calls undefined function ext",
        """
define ptx_kernel void @_Z2unPf(ptr %0) {
  call void @_Z3extPf(ptr %0)
  ret void
}
""",
    ),
    # a local array of pointers
    "darr": (
        "0:w 1:w 2:r",
        """
define ptx_kernel void @_Z4darrPfS_PKfi(ptr %0, ptr %1, ptr %2, i32 %3) {
  %5 = alloca [2 x ptr]
  store ptr %0, ptr %5
  %6 = getelementptr i8, ptr %5, i64 8
  store ptr %1, ptr %6
  %7 = load float, ptr %2
  %8 = sext i32 %3 to i64
  %9 = getelementptr ptr, ptr %5, i64 %8
  %10 = load ptr, ptr %9
  store float %7, ptr %10
  ret void
}
""",
    ),
    "sel": (
        "0:w 1:w",
        """
define ptx_kernel void @_Z3selPfS_i(ptr %0, ptr %1, i32 %2) {
  %4 = icmp eq i32 %2, 0
  %5 = select i1 %4, ptr %1, ptr %0
  store float 1.000000e+00, ptr %5
  ret void
}
""",
    ),
    "pingpong": (
        "0:rw 1:r 2:rw",
        """
define ptx_kernel void @_Z8pingpongPfPKfS_i(ptr %0, ptr %1, ptr %2, i32 %3) {
  %5 = icmp sgt i32 %3, 0
  br i1 %5, label %7, label %6
6:
  ret void
7:
  %8 = phi ptr [ %10, %7 ], [ %0, %4 ]
  %9 = phi i32 [ %17, %7 ], [ 0, %4 ]
  %10 = phi ptr [ %8, %7 ], [ %2, %4 ]
  %11 = zext i32 %9 to i64
  %12 = getelementptr float, ptr %10, i64 %11
  %13 = load float, ptr %12
  %14 = load float, ptr %1
  %15 = fadd float %13, %14
  %16 = getelementptr float, ptr %8, i64 %11
  store float %15, ptr %16
  %17 = add i32 %9, 1
  %18 = icmp eq i32 %17, %3
  br i1 %18, label %6, label %7
}
""",
    ),
    # a pointer rounded as an integer
    "rnd": (
        "0:w",
        """
define ptx_kernel void @_Z3rndPfm(ptr %0, i64 %1) {
  %3 = ptrtoint ptr %0 to i64
  %4 = add i64 %1, %3
  %5 = and i64 %4, -16
  %6 = inttoptr i64 %5 to ptr
  store float 1.000000e+00, ptr %6
  ret void
}
""",
    ),
    # the distance of two pointers is no pointer
    "diff": (
        "0:r 1:w",
        """
define ptx_kernel void @_Z4diffPKfPli(ptr %0, ptr %1, i32 %2) {
  %4 = icmp sgt i32 %2, 0
  br i1 %4, label %11, label %5
5:
  %6 = phi ptr [ %0, %3 ], [ %19, %11 ]
  %7 = ptrtoint ptr %6 to i64
  %8 = ptrtoint ptr %0 to i64
  %9 = sub i64 %7, %8
  %10 = ashr i64 %9, 2
  store i64 %10, ptr %1
  ret void
11:
  %12 = phi i32 [ %20, %11 ], [ 0, %3 ]
  %13 = phi ptr [ %19, %11 ], [ %0, %3 ]
  %14 = zext i32 %12 to i64
  %15 = getelementptr float, ptr %0, i64 %14
  %16 = load float, ptr %15
  %17 = load float, ptr %13
  %18 = fcmp ogt float %16, %17
  %19 = select i1 %18, ptr %15, ptr %13
  %20 = add i32 %12, 1
  %21 = icmp eq i32 %20, %2
  br i1 %21, label %5, label %11
}
""",
    ),
    # pointers kept in shared memory
    "shptr": (
        "0:w 1:w",
        """
@_ZZ5shptrPfS_E1s = internal addrspace(3) global [2 x ptr] undef
define ptx_kernel void @_Z5shptrPfS_(ptr %0, ptr %1) {
  %3 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %4 = icmp eq i32 %3, 0
  br i1 %4, label %5, label %6
5:
  store ptr %0, ptr addrspacecast (ptr addrspace(3) @_ZZ5shptrPfS_E1s to ptr)
  store ptr %1, ptr getelementptr (i8, ptr addrspacecast (ptr addrspace(3) @_ZZ5shptrPfS_E1s to ptr), i64 8)
  br label %6
6:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %7 = zext i32 %3 to i64
  %8 = getelementptr ptr, ptr addrspacecast (ptr addrspace(3) @_ZZ5shptrPfS_E1s to ptr), i64 %7
  %9 = load ptr, ptr %8
  store float 1.000000e+00, ptr %9
  ret void
}
""",
    ),
    # a pointer in two halves in shared memory
    "split": (
        "0:w",
        """
@_ZZ5splitPfE1s.0 = internal addrspace(3) global i32 undef
@_ZZ5splitPfE1s.1 = internal addrspace(3) global i32 undef
define ptx_kernel void @_Z5splitPf(ptr %0) {
  %2 = ptrtoint ptr %0 to i64
  %3 = trunc i64 %2 to i32
  store i32 %3, ptr addrspace(3) @_ZZ5splitPfE1s.0
  %4 = lshr i64 %2, 32
  %5 = trunc i64 %4 to i32
  store i32 %5, ptr addrspace(3) @_ZZ5splitPfE1s.1
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %6 = load i32, ptr addrspace(3) @_ZZ5splitPfE1s.1
  %7 = zext i32 %6 to i64
  %8 = shl i64 %7, 32
  %9 = load i32, ptr addrspace(3) @_ZZ5splitPfE1s.0
  %10 = zext i32 %9 to i64
  %11 = or i64 %8, %10
  %12 = inttoptr i64 %11 to ptr
  store float 1.000000e+00, ptr %12
  ret void
}
""",
    ),
    "forged": (
        "?turns an integer into a pointer",
        """
define ptx_kernel void @_Z6forgedm(i64 %0) {
  %2 = inttoptr i64 %0 to ptr
  store float 1.000000e+00, ptr %2
  ret void
}
""",
    ),
    # a 64-bit index loaded from memory is an index, not a pointer
    "gather": (
        "0:r 1:r 2:w",
        """
define ptx_kernel void @_Z6gatherPKlPKdPd(ptr %0, ptr %1, ptr %2) {
  %4 = load i64, ptr %0
  %5 = getelementptr double, ptr %1, i64 %4
  %6 = load double, ptr %5
  %7 = getelementptr i8, ptr %0, i64 8
  %8 = load i64, ptr %7
  %9 = getelementptr double, ptr %2, i64 %8
  store double %6, ptr %9
  ret void
}
""",
    ),
    "ind": (
        "fpt:r !unseen ?calls a function through a pointer",
        """
@fpt = addrspace(1) externally_initialized global [2 x ptr] [ptr @_Z5copy1PfPKf, ptr @_Z5copy1PfPKf]
define ptx_kernel void @_Z3indPfi(ptr %0, i32 %1) {
  %3 = sext i32 %1 to i64
  %4 = getelementptr ptr, ptr addrspacecast (ptr addrspace(1) @fpt to ptr), i64 %3
  %5 = load ptr, ptr %4
  call void %5(ptr %0, ptr %0)
  ret void
}
define void @_Z5copy1PfPKf(ptr %0, ptr %1) {
  %3 = load float, ptr %1
  store float %3, ptr %0
  ret void
}
""",
    ),
    # recursion, with a list of structures on the stack
    "recur": (
        "0:r 1:w",
        """
define ptx_kernel void @_Z5recurPKfPf(ptr %0, ptr %1) {
  %3 = alloca %struct.Ctx
  store ptr %0, ptr %3
  %4 = getelementptr i8, ptr %3, i64 8
  store ptr %1, ptr %4
  %5 = getelementptr i8, ptr %3, i64 16
  store ptr null, ptr %5
  call void @_Z3recP3Ctxi(ptr %3, i32 5)
  ret void
}
define void @_Z3recP3Ctxi(ptr %0, i32 %1) {
  %3 = alloca %struct.Ctx
  %4 = icmp eq i32 %1, 0
  br i1 %4, label %5, label %16
5:
  %6 = getelementptr i8, ptr %0, i64 16
  %7 = load ptr, ptr %6
  %8 = icmp eq ptr %7, null
  br i1 %8, label %12, label %9
9:
  %10 = load ptr, ptr %7
  %11 = load float, ptr %10
  br label %12
12:
  %13 = phi float [ %11, %9 ], [ 0.000000e+00, %5 ]
  %14 = getelementptr i8, ptr %0, i64 8
  %15 = load ptr, ptr %14
  store float %13, ptr %15
  br label %23
16:
  %17 = load ptr, ptr %0
  store ptr %17, ptr %3
  %18 = getelementptr i8, ptr %3, i64 8
  %19 = getelementptr i8, ptr %0, i64 8
  %20 = load ptr, ptr %19
  store ptr %20, ptr %18
  %21 = getelementptr i8, ptr %3, i64 16
  store ptr %0, ptr %21
  %22 = add i32 %1, -1
  call void @_Z3recP3Ctxi(ptr %3, i32 %22)
  br label %23
23:
  ret void
}
""",
    ),
    "esc": (
        "0:w ?stores a pointer into memory",
        """
define ptx_kernel void @_Z3escPPfS_(ptr %0, ptr %1) {
  store ptr %1, ptr %0
  ret void
}
""",
    ),
    "tx": (
        "1:w !texture",
        r"""
define ptx_kernel void @_Z2txyPf(i64 %0, ptr %1) {
  %3 = call { float, float, float, float }
    asm "tex.2d.v4.f32.f32\09{$0, $1, $2, $3}, [$4, {$5, $6}];", "=f,=f,=f,=f,l,f,f"
    (i64 %0, float 1.000000e+00, float 2.000000e+00)
  %4 = extractvalue { float, float, float, float } %3, 0
  store float %4, ptr %1
  ret void
}
""",
    ),
    "sf": (
        "1:r !texture ?accesses memory through a surface",
        """
define ptx_kernel void @_Z2sfyPf(i64 %0, ptr %1) {
  %3 = load float, ptr %1
  call void asm sideeffect "sust.b.2d.b32.trap [$0, {$1, $2}], {$3};", "l,r,r,r"(i64 %0, i32 1, i32 2, float %3)
  ret void
}
""",
    ),
    # inline assembly that loads and stores
    "as1": (
        "0:r 1:w",
        """
define ptx_kernel void @_Z3as1PKfPi(ptr %0, ptr %1) {
  %3 = call i32 asm sideeffect "ld.global.s32 $0, [$1];", "=r,l"(ptr %0)
  call void asm sideeffect "st.global.s32 [$0], $1;", "l,r,~{memory}"(ptr %1, i32 %3)
  ret void
}
""",
    ),
    # inline assembly that touches no memory
    "as2": (
        "0:w",
        """
define ptx_kernel void @_Z3as2Pi(ptr %0) {
  %2 = call i32 asm "mov.u32 $0, %laneid;", "=r"()
  call void asm sideeffect "bar.sync 0; membar.gl;", "~{memory}"()
  %3 = sext i32 %2 to i64
  %4 = getelementptr i32, ptr %0, i64 %3
  store i32 1, ptr %4
  ret void
}
""",
    ),
    "as3": (
        "?contains inline assembly ('frobnicate.b32')",
        """
define ptx_kernel void @_Z3as3Pf(ptr %0) {
  call void asm sideeffect "frobnicate.b32 [$0];", "l,~{memory}"(ptr %0)
  ret void
}
""",
    ),
    "as4": (
        "1:w !clock",
        """
define ptx_kernel void @_Z3as4PfPj(ptr %0, ptr %1) {
  %3 = call i32 asm sideeffect "mov.u32 $0, %globaltimer_lo;", "=r"()
  store i32 %3, ptr %1
  ret void
}
""",
    ),
    "lib": (
        "1:rw",
        """
define ptx_kernel void @_Z3libPdPf(ptr %0, ptr %1) {
  %3 = getelementptr i8, ptr %1, i64 4
  %4 = load float, ptr %3
  %5 = fmul float %4, 0x3FF7154760000000
  %6 = call float @llvm.nvvm.ex2.approx.f32(float %5)
  store float %6, ptr %1
  ret void
}
""",
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernel(name: str) -> None:
    expected, ir = KERNELS[name]
    assert effects_of(ir) == expected


def kernel(parameters: str, body: str) -> str:
    """What a kernel with that body does."""
    return effects_of(f"define ptx_kernel void @k({parameters}) {{\n{body}\nret void\n}}")


def test_a_pointer_hidden_among_integers_of_a_structure_is_not_trusted() -> None:
    body = "%p = load ptr, ptr %u\nstore float 0.0, ptr %p"
    assert kernel("ptr byval(%union.U) %u", body) == "?turns an integer into a pointer"


def test_a_union_whose_type_is_a_pointer_is_one() -> None:
    ir = """
%union.Sole = type { ptr }
%struct.Sole = type { %union.Sole, ptr }
define ptx_kernel void @k(ptr byval(%struct.Sole) %s) {
  %p = load ptr, ptr %s
  store float 0.0, ptr %p
  ret void
}
"""
    assert effects_of(ir) == "0:w"


@pytest.mark.parametrize(
    ("others", "tag", "expected"),
    [
        ("[3 x i64]", "", "turns an integer into a pointer"),
        ("[3 x i64]", ", !tbaa !0", ""),
        ("[6 x i32]", ", !tbaa !0", ""),
        ("[3 x %union.U]", ", !tbaa !0", "turns an integer into a pointer"),  # one of its members may be a pointer
        ("[24 x i8]", ", !tbaa !0", "turns an integer into a pointer"),  # bytes of pointers
        ("[3 x { [8 x i8] }]", ", !tbaa !0", "turns an integer into a pointer"),
    ],
)
def test_an_address_among_integers_counts_unless_a_pointer_is_declared_there(
    others: str, tag: str, expected: str
) -> None:
    ir = f"""
%struct.Mixed = type {{ {others}, ptr }}
define ptx_kernel void @k(ptr byval(%struct.Mixed) %s, i64 %i) {{
  %a = getelementptr ptr, ptr %s, i64 %i
  %p = load ptr, ptr %a{tag}
  store float 0.0, ptr %p
  ret void
}}
!0 = !{{!1, !1, i64 0}}
!1 = !{{!"p1 float", !2, i64 0}}
!2 = !{{!"Simple C++ TBAA"}}
"""
    assert effects_of(ir) == f"0+24:w ?{expected}".removesuffix(" ?")


def test_a_structure_without_a_name_has_a_layout() -> None:
    body = "%f = getelementptr i8, ptr %s, i64 8\n%p = load ptr, ptr %f\nstore float 0.0, ptr %p"
    assert kernel("ptr byval({ ptr, ptr }) %s", body) == "0+8:w"


def test_absolute_addresses_and_addresses_made_of_nothing_are_opaque() -> None:
    assert kernel("", "store i32 0, ptr inttoptr (i64 4096 to ptr)") == "?turns an integer into a pointer"
    made = "%t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n%w = zext i32 %t to i64\n"
    unknown = "accesses memory through a pointer of unknown origin"
    assert kernel("", made + "%p = inttoptr i64 %w to ptr\nstore i32 0, ptr %p") == f"?{unknown}"
    chosen = "%p = inttoptr i64 %w to ptr\n%q = select i1 %c, ptr %p, ptr %a\nstore i32 0, ptr %q"
    assert kernel("ptr %a, i1 %c", made + chosen) == f"0:w ?{unknown}"
    assert kernel("i64 %a", "%p = getelementptr i8, ptr null, i64 %a\nstore i32 0, ptr %p").startswith("?turns")


def test_a_pointer_made_by_inline_assembly_is_unknown() -> None:
    body = '%p = call ptr asm "mov.u64 $0, thing;", "=l"()\nstore i32 0, ptr %p'
    assert kernel("ptr %a", body) == "?contains inline assembly that takes the address of a name"
    chosen = body.replace("store", "%q = select i1 %c, ptr %p, ptr %a\nstore").replace("ptr %p\n", "ptr %q\n")
    assert kernel("ptr %a, i1 %c", chosen).endswith("?contains inline assembly that takes the address of a name")


def test_an_address_within_inline_assembly_is_what_its_registers_are_made_of() -> None:
    copies = (
        '%v = call float asm sideeffect "{ .reg .u64 t, u; cvta.to.global.u64 t, $1; cvta.to.global.u64 u, $2;'
        ' ld.global.f32 $0, [u]; st.global.f32 [t], $0; }", "=&f,l,l"(ptr %a, LAST %b)'
    )
    assert kernel("ptr %a, ptr %b", copies.replace("LAST", "ptr")).startswith("0:w 1:r")
    assert kernel("ptr %a, i64 %b", copies.replace("LAST", "i64")) == "0:w ?turns an integer into a pointer"
    indexed = copies.replace("cvta.to.global.u64 u, $2", "add.u64 u, $1, $2")
    assert kernel("ptr %a, i64 %b", indexed.replace("LAST", "i64")) == "0:rw"


def test_inline_assembly_that_follows_what_it_loads_into_an_output() -> None:
    text = '"ld.global.u64 $1, [$2]; ld.global.f32 $0, [$1];", "=f,=&l,l"'
    body = f"%v = call {{ float, i64 }} asm sideeffect {text}(ptr %a)"
    assert "computes an address from what it has loaded" in kernel("ptr %a", body)


@pytest.mark.parametrize(("linkage", "known"), [("weak", False), ("linkonce", False), ("weak_odr", True), ("", True)])
def test_what_another_file_may_replace_is_not_looked_into(linkage: str, known: bool) -> None:
    callee = f"define {linkage} void @put(ptr %p) {{\nstore i32 0, ptr %p\nret void\n}}\n"
    caller = "define ptx_kernel void @k(ptr %a) {\ncall void @put(ptr %a)\nret void\n}"
    assert effects_of(callee + caller) == ("0:w" if known else "!unseen ?calls put, which another file may replace")
    kernel = f"define {linkage} ptx_kernel void @k(ptr %a) {{\nstore i32 0, ptr %a\nret void\n}}"
    assert effects_of(kernel) == ("0:w" if known else "!unseen ?another file may replace it")


PICK = """
define ptr @pick(ptr %a, ptr %b, i1 %c) {
  %p = select i1 %c, ptr %a, ptr %b
  ret ptr %p
}
define ptx_kernel void @k(ptr %a, ptr %b, ptr %o, i1 %c) {
"""


def test_pointers_that_functions_return() -> None:
    body = "%p = call ptr @pick(ptr %a, ptr %b, i1 %c)\nstore i32 0, ptr %p\nret void\n}"
    assert effects_of(PICK + body) == "0:w 1:w"
    apart = "%p = call ptr @pick(ptr %a, ptr %a, i1 %c)\n%q = call ptr @pick(ptr %b, ptr %b, i1 %c)\n"
    apart += "%v = load i32, ptr %q\nstore i32 %v, ptr %p\nret void\n}"
    assert effects_of(PICK + apart) == "0:w 1:r"


def test_the_distance_of_a_pointer_that_is_not_known_at_first() -> None:
    body = "%p = call ptr @pick(ptr %a, ptr %a, i1 %c)\n%i = ptrtoint ptr %p to i64\n%j = ptrtoint ptr %a to i64\n"
    body += "%d = sub i64 %i, %j\nstore i64 %d, ptr %o\nret void\n}"
    assert effects_of(PICK + body) == "2:w"
    assert effects_of(PICK + body.replace("ptr %a, ptr %a", "ptr %a, ptr %b")).endswith("?stores a pointer into memory")


def test_floats_beside_pointers_in_dynamic_shared_memory() -> None:
    sm = "ptr addrspacecast (ptr addrspace(3) @sm to ptr)"
    body = f"%p = getelementptr i8, {sm}, i64 %n\nstore ptr %a, ptr %p\n%v = load float, {sm}\nstore float %v, ptr %b"
    ir = "@sm = external addrspace(3) global [0 x i8]\ndefine ptx_kernel void @k(ptr %a, ptr %b, i64 %n) {\n"
    assert effects_of(ir + body + "\nret void\n}") == "1:w"


def test_an_offset_counted_in_elements_is_turned_into_bytes() -> None:
    body = "%f = getelementptr ptr, ptr %s, i64 2\n%p = load ptr, ptr %f\nstore i32 0, ptr %p"
    assert kernel("ptr byval(%struct.Ctx) %s", body) == "0+16:w"


def test_memory_copied_onto_itself_ends() -> None:
    body = "%t = alloca [64 x ptr]\nstore ptr %a, ptr %t\n%u = getelementptr i8, ptr %t, i64 8\n"
    body += "call void @llvm.memcpy.p0.p0.i64(ptr %u, ptr %t, i64 %n, i1 false)\n"
    body += "%v = getelementptr i8, ptr %t, i64 80\n%p = load ptr, ptr %v\nstore i32 0, ptr %p"
    assert kernel("ptr %a, i64 %n", body) == "0:w"


def test_an_access_through_null_is_none() -> None:
    assert kernel("", "store i32 0, ptr null") == ""
    assert kernel("ptr %a, i1 %c", "%p = select i1 %c, ptr null, ptr %a\nstore i32 0, ptr %p") == "0:w"


def test_pointers_survive_integer_arithmetic() -> None:
    mixed = "%i = ptrtoint ptr %a to i64\n%j = ptrtoint ptr %b to i64\n%x = xor i64 %i, %j\n%y = xor i64 %x, %i\n"
    assert kernel("ptr %a, ptr %b", mixed + "%p = inttoptr i64 %y to ptr\nstore i32 0, ptr %p") == "0:w 1:w"
    moved = "%i = ptrtoint ptr %a to i64\n%j = ptrtoint ptr %b to i64\n%d = sub i64 %i, %j\n"
    moved += "%p = getelementptr i8, ptr %b, i64 %d\nstore i32 0, ptr %p"
    assert kernel("ptr %a, ptr %b", moved) == "0:w 1:w"


def test_an_integer_loaded_and_used_as_a_pointer_is_deep() -> None:
    body = "%i = load i64, ptr %a\n%p = inttoptr i64 %i to ptr\n%v = load i32, ptr %p\nstore i32 %v, ptr %b"
    assert kernel("ptr %a, ptr %b", body) == "0:r/r 1:w"


def test_two_copies_of_one_address_stored_as_an_integer_escape() -> None:
    body = "%i = ptrtoint ptr %a to i64\n%h = mul i64 %i, 31\nstore i64 %h, ptr %b"
    assert kernel("ptr %a, ptr %b", body) == "1:w ?stores a pointer into memory"


def test_a_pointer_that_steps_through_a_local_array_keeps_all_its_contents() -> None:
    body = """
  %t = alloca [2 x %struct.S]
  store ptr %a, ptr %t
  %f = getelementptr i8, ptr %t, i64 32
  store ptr %b, ptr %f
  br label %loop
loop:
  %p = phi ptr [ %t, %0 ], [ %n, %loop ]
  %n = getelementptr i8, ptr %p, i64 8
  %q = load ptr, ptr %p
  store i32 0, ptr %q
  br i1 %c, label %loop, label %end
end:"""
    assert kernel("ptr %a, ptr %b, i1 %c", body) == "0:w 1:w"


def test_unknown_instructions_and_intrinsics_are_opaque() -> None:
    ir = "declare void @llvm.nvvm.something.new(ptr)\ndefine ptx_kernel void @k(ptr %a) {\n"
    reason = effects_of(ir.replace("something.new", "read.ptx.sreg.new") + "ret void\n}")
    assert reason == ""
    assert callee_behaviour("llvm.nvvm.something.new", "nounwind", ((True, ""),)).opaque
    assert kernel("ptr %a", "%v = va_arg ptr %a, i32").endswith(
        "?contains an instruction that is not understood (va_arg)"
    )


def test_aliases_lead_to_what_they_name() -> None:
    ir = """
@g = addrspace(1) externally_initialized global i32 0
@a = alias i32, ptr addrspace(1) @g
@fa = alias void (ptr), ptr @f
define void @f(ptr %p) {
  store i32 1, ptr %p
  ret void
}
define ptx_kernel void @k(ptr %x) {
  store i32 0, ptr addrspacecast (ptr addrspace(1) @a to ptr)
  call void @fa(ptr %x)
  ret void
}"""
    assert effects_of(ir) == "0:w g:w"


def test_attributes_of_functions_with_a_body_are_not_believed() -> None:
    body = "%p = load ptr, ptr %a\nstore i32 0, ptr %p\nret void"
    assert effects_of(f"define ptx_kernel void @k(ptr readonly %a) memory(none) {{\n{body}\n}}") == "0:r/w"


def test_many_calls_of_large_functions_still_end() -> None:
    """A tree of calls that would be 4**12 functions if each had a frame of its own."""
    ir = "define void @f0(ptr %p) {\nstore i32 0, ptr %p\nret void\n}\n"
    for i in range(1, 13):
        ir += f"define void @f{i}(ptr %p) {{\n" + f"call void @f{i - 1}(ptr %p)\n" * 4 + "ret void\n}\n"
    assert effects_of(ir + "define ptx_kernel void @k(ptr %a, ptr %b) {\ncall void @f12(ptr %b)\nret void\n}") == "1:w"


def test_kernels_come_sorted_with_their_names() -> None:
    ir = PRELUDE + "".join(
        f"define ptx_kernel void @{n}() {{\nret void\n}}\n" for n in ("_Z1bv", '"odd name"', "_ZN1n1aEv")
    )
    found = [(k.name, k.display, k.outputs, k.priority) for k in kernel_effects(ir + "define void @f() {\nret void\n}")]
    assert found == [
        ("_Z1bv", "b", None, None),
        ("_ZN1n1aEv", "n::a", None, None),
        ("odd name", "odd name", None, None),
    ]
    assert kernel_effects("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "not IR at all",
        "define ptx_kernel void @k() {\n%1 = add i32 %2, 1\nret void\n}",
        "define ptx_kernel void @k() {\n%x = add i32 %y, 1\n%y = add i32 %x, 1\nret void\n}",  # LLVM's verifier
    ],
)
def test_unreadable_text_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError) as caught:
        kernel_effects(text)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "K110"
    assert "\n" not in diagnostic.message


def test_three_hundred_kernels_take_less_than_two_seconds() -> None:
    one = KERNELS["recur"][1] + KERNELS["darr"][1] + KERNELS["pingpong"][1]
    names = ("_Z5recurPKfPf", "_Z3recP3Ctxi", "_Z4darrPfS_PKfi", "_Z8pingpongPfPKfS_i")
    text = PRELUDE
    for i in range(100):
        copy = one
        for name in names:
            copy = copy.replace(f"@{name}(", f"@{name}.{i}(")
        text += copy
    kernel_effects(PRELUDE)  # loads LLVM
    before = time.process_time()
    assert len(kernel_effects(text)) == 300
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    ("mangled", "display"),
    [
        ("_Z4blurPKf", "blur"),
        ("_ZL4blurPKf", "blur"),
        ("_ZN2ns4blurIfE1aEv", "ns::blur"),
        ("_ZN2ns5scaleIfEEvPT_S1_", "ns::scale"),
        ("_Z4blurIfLi3EEvPT_", "blur"),
        ("_ZN12_GLOBAL__N_14blurEv", "(anonymous namespace)::blur"),
        ("_ZN2nsL4blurEv", "ns::blur"),
        ("_ZSt4blurv", "std::blur"),
        ("blur", "blur"),
        ("_Z9blurv", "_Z9blurv"),
        ("_Z5frühPi", "früh"),
        ("_ZplRK1SS1_", "operator+"),
        ("_ZN2nsplE1S", "ns::operator+"),
        ("_ZNK3VecIfEmLERKS0_", "Vec::operator*="),
        ("_ZNK6Tensor4sizeEv", "Tensor::size"),
        ("_ZN3XmlC1Ev", "_ZN3XmlC1Ev"),
        ("_Z3mulii", "mul"),
        ("_ZN5GuardD1Ev", "~Guard"),
        ("_ZNSt10unique_ptrIfSt14default_deleteIfEED2Ev", "~unique_ptr"),
        ("_ZN3BoxIfE3putEv", "Box"),
    ],
)
def test_display_name(mangled: str, display: str) -> None:
    assert display_name(mangled) == display


@pytest.mark.parametrize(
    ("name", "attributes", "params", "expected"),
    [
        ("__nv_sincosf", "", ((False, ""), (True, ""), (True, "")), Behaviour((Touch(1, W), Touch(2, W)))),
        ("__nv_expf", "", ((False, ""),), Behaviour()),
        ("llvm.fma.f32", "nounwind memory(none)", ((False, ""),), Behaviour()),
        ("llvm.nvvm.ldg.global.f.f32.p1", "memory(argmem: read)", ((True, ""),), Behaviour((Touch(0, R),))),
        (
            "llvm.nvvm.cp.async.ca.shared.global.4",
            "memory(argmem: readwrite)",
            ((True, "noalias writeonly"), (True, "noalias readonly")),
            Behaviour((Touch(0, W), Touch(1, R))),
        ),
        ("llvm.nvvm.shfl.sync.down.f32", "memory(inaccessiblemem: readwrite)", ((False, ""),), Behaviour()),
        ("llvm.readcyclecounter", "", (), Behaviour(order=("clock",))),
        ("llvm.nvvm.tex.unified.2d.v4f32.f32", "", ((False, ""),), Behaviour(order=("texture",))),
    ],
)
def test_calls_without_a_body(
    name: str, attributes: str, params: tuple[tuple[bool, str], ...], expected: Behaviour
) -> None:
    assert callee_behaviour(name, attributes, params) == expected


@pytest.mark.parametrize(
    ("name", "order", "opaque"),
    [
        ("cudaLaunchDeviceV2", ("launch", "unseen"), True),
        ("cudaGetParameterBufferV2", ("launch", "unseen"), True),
        ("_Znam", ("heap",), False),
        ("_ZdlPv", ("heap",), False),
        ("llvm.trap", ("assert",), False),
        ("llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d", (), True),
        ("llvm.nvvm.sust.b.2d.i32.trap", ("texture",), True),
        ("llvm.masked.gather.v4f32.v4p0", (), True),
    ],
)
def test_calls_with_an_order(name: str, order: tuple[str, ...], opaque: bool) -> None:
    found = callee_behaviour(name, "memory(read)", ((True, ""),))
    assert (found.order, bool(found.opaque)) == (order, opaque)


@pytest.mark.parametrize(
    ("template", "constraints", "touches"),
    [
        ("atom.add.release.gpu.u32 $0,[$1],$2;", "=r,l,r,~{memory}", (Touch(0, RW),)),
        ("red.global.add.f32 [$0], $1;", "l,f", (Touch(0, RW),)),
        ("cp.async.cg.shared.global [$0], [$1], 16;", "r,l", (Touch(0, W), Touch(1, R))),
        ("cp.async.wait_group 0;", "~{memory}", ()),
        (
            "{\\0A .reg .u64 t;\\0A cvta.to.global.u64 t, $1;\\0A ld.global.f32 $0, [t+4];\\0A}",
            "=f,l",
            (Touch((0,), R),),
        ),
        ("add.u64 $1, $1, $3; ld.global.f32 $0, [$1+8];", "=f,=&l,1,l", (Touch((0, 1), R),)),
        ("{ .reg .pred p; setp.ne.b32 p, $2, 0; @p ld.global.v2.u32 {$0, $1}, [$3]; }", "=r,=r,r,l", (Touch(1, R),)),
        ("st.shared.b32 [$0], $1;", "r,r", (Touch(0, W, True),)),
        (
            "{ .reg .f32 v; .reg .u64 a; ld.global.f32 v, [$1]; cvta.to.global.u64 a, $0; st.global.f32 [a], v; }",
            "l,l",
            (Touch(1, R), Touch((0,), W)),
        ),
        ("prefetch.global.L2 [$0];", "l", ()),
        ("// note: ld.global\\0A membar.gl; fence.sc.gpu; nanosleep.u32 20;", "", ()),
        ("WAIT:\\0A mbarrier.try_wait.shared.b64 p, [$0], $1;\\0A @!p bra WAIT;", "r,r", (Touch(0, RW, True),)),
    ],
)
def test_inline_assembly(template: str, constraints: str, touches: tuple[Touch, ...]) -> None:
    found = assembly_behaviour(f'void () asm sideeffect "{template}", "{constraints}"')
    assert (found.touches, found.opaque, found.order) == (touches, "", ())


@pytest.mark.parametrize(
    "template",
    [
        "call (r), f, (a);",
        "cp.async.bulk.tensor.2d.shared.global [$0], [$1, {$2}];",
        ".global .u32 x;",
        "newop.b32 $0;",
        "{ .reg .u64 t; ld.global.u64 t, [$0]; st.global.f32 [t], 0f00000000; }",
        "{ .reg .u64 t, u; ld.global.v2.u64 {t, u}, [$0]; add.u64 u, u, 4; st.global.f32 [u], 0f00000000; }",
        "{ .reg .u64 t; mov.u64 t, $0; L: st.global.u32 [t], 1; ld.global.u64 t, [t]; bra L; }",
        "st.global.u64 [thing+4], $0;",
        "{ .reg .u64 t; mov.u64 t, thing; st.global.u64 [t], $0; }",
        "{ .reg .u64 t; ld.shared.u64 t, [$0]; st.global.f32 [t], 0f00000000; }",
    ],
)
def test_inline_assembly_that_is_not_understood(template: str) -> None:
    assert assembly_behaviour(f'void (i64) asm sideeffect "{template}", "l"').opaque


def test_an_order_seen_in_inline_assembly() -> None:
    both = 'i32 (i64) asm sideeffect "mov.u32 $0, %clock; tex.1d.v4.f32.s32 {$0}, [$1, {$2}];", "=r,l"'
    assert assembly_behaviour(both).order == ("clock", "texture")
    assert assembly_behaviour('void () asm sideeffect "trap;", ""').order == ("assert",)
    assert assembly_behaviour("something else").opaque


@pytest.mark.parametrize(
    ("load", "order"),
    [("ld.acquire.gpu.u32 v, [$0];", ("spin",)), ("atom.global.or.b32 v, [$0], 0;", ("spin",)),
     ("ld.shared.u32 v, [$0];", ()), ("mbarrier.test_wait.shared.b64 p, [$0], v;", ())],
)  # fmt: skip
def test_a_loop_of_inline_assembly_may_wait_for_another_block(load: str, order: tuple[str, ...]) -> None:
    loop = f"{{ .reg .pred p; .reg .u32 v; L: {load} setp.eq.u32 p, v, 0; @p bra L; }}"
    assert assembly_behaviour(f'void (i64) asm sideeffect "{loop}", "l"').order == order
    once = loop.replace("@p bra L;", "")
    assert assembly_behaviour(f'void (i64) asm sideeffect "{once}", "l"').order == ()
