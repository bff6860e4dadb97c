"""What steers a kernel's accesses, from device IR: one small kernel for each way in which an argument can decide.

All kernels are given ``ptr %d, ptr %e, i32 %a, i32 %b, i32 %v`` and a structure ``%s`` of a pointer and two integers.
"""

from __future__ import annotations

import pytest

from kesco.analysis.device_steering import kernel_steering

PRELUDE = """
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
%struct.S = type { ptr, i32, i32 }
@symbol = addrspace(1) externally_initialized global [8 x i32] zeroinitializer
@shared = internal addrspace(3) global [8 x i32] undef
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)
declare void @llvm.trap()
declare ptr @malloc(i64)
"""
KERNEL = "define ptx_kernel void @k(ptr %d, ptr %e, i32 %a, i32 %b, i32 %v, ptr byval(%struct.S) align 8 %s) {"
NAMES = "deabvs"

# name: what steers each root beside the pointer itself, the kernel's body, and other functions
KERNELS = {
    "a value": ("d:", "store i32 %v, ptr %d\nret void", ""),
    "an address": ("d:a", "%p = getelementptr i32, ptr %d, i32 %a\nstore i32 %v, ptr %p\nret void", ""),
    "a load": (
        "d: e:b",
        "%p = getelementptr i32, ptr %e, i32 %b\n%x = load i32, ptr %p\nstore i32 %x, ptr %d\nret void",
        "",
    ),
    "an index that is loaded": (
        "d:eb e:b",
        "%p = getelementptr i32, ptr %e, i32 %b\n%x = load i32, ptr %p\n"
        "%q = getelementptr i32, ptr %d, i32 %x\nstore i32 %v, ptr %q\nret void",
        "",
    ),
    "a pointer that is loaded": (
        "d:a e:",
        "%q = load ptr, ptr %d\n%p = getelementptr i32, ptr %q, i32 %a\nstore i32 %v, ptr %p\n"
        "store i32 %v, ptr %e\nret void",
        "",
    ),
    "a condition": (
        "d:a e:",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %yes, label %no\nyes:\nstore i32 %v, ptr %d\nbr label %no\n"
        "no:\nstore i32 %v, ptr %e\nret void",
        "",
    ),
    "a condition in a condition": (
        "d:ab",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %outer, label %no\nouter:\n%f = icmp eq i32 %b, 0\n"
        "br i1 %f, label %inner, label %no\ninner:\nstore i32 %v, ptr %d\nbr label %no\nno:\nret void",
        "",
    ),
    "a loop that decides of nothing behind it": (
        "d:",
        "br label %again\nagain:\n%i = phi i32 [0, %0], [%j, %again]\n%j = add i32 %i, 1\n%c = icmp slt i32 %j, %a\n"
        "br i1 %c, label %again, label %done\ndone:\nstore i32 %v, ptr %d\nret void",
        "",
    ),
    "a loop's counter": (
        "d:a",
        "br label %again\nagain:\n%i = phi i32 [0, %0], [%j, %again]\n%p = getelementptr i32, ptr %d, i32 %i\n"
        "store i32 %v, ptr %p\n%j = add i32 %i, 1\n%c = icmp slt i32 %j, %a\nbr i1 %c, label %again, label %done\n"
        "done:\nret void",
        "",
    ),
    "a loop without an end": (
        "d:a",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %for, label %no\nfor:\nstore i32 %v, ptr %d\nbr label %for\n"
        "no:\nret void",
        "",
    ),
    "a way that was chosen": (
        "d:a",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %yes, label %no\nyes:\nbr label %no\n"
        "no:\n%i = phi i32 [1, %yes], [2, %0]\n%p = getelementptr i32, ptr %d, i32 %i\nstore i32 %v, ptr %p\nret void",
        "",
    ),
    "a way that was chosen long before": (
        "d:ab",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %yes, label %no\nyes:\n%f = icmp eq i32 %b, 0\n"
        "br i1 %f, label %one, label %two\none:\nbr label %join\ntwo:\nbr label %join\nno:\nbr label %join\n"
        "join:\n%i = phi i32 [1, %one], [2, %two], [3, %no]\n%p = getelementptr i32, ptr %d, i32 %i\n"
        "store i32 %v, ptr %p\nret void",
        "",
    ),
    "a switch": (
        "d:a",
        "switch i32 %a, label %no [i32 1, label %yes\ni32 2, label %yes]\nyes:\nstore i32 %v, ptr %d\n"
        "br label %no\nno:\nret void",
        "",
    ),
    "one of two pointers": (
        "d:ea e:da",
        "%c = icmp eq i32 %a, 0\n%p = select i1 %c, ptr %d, ptr %e\nstore i32 %v, ptr %p\nret void",
        "",
    ),
    "a trap": (
        "d:a",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %yes, label %no\nyes:\ncall void @llvm.trap()\nunreachable\n"
        "no:\nstore i32 %v, ptr %d\nret void",
        "",
    ),
    "a trap in a function": (
        "d:a",
        "call void @f(i32 %a)\nstore i32 %v, ptr %d\nret void",
        "define void @f(i32 %x) {\n%c = icmp eq i32 %x, 0\nbr i1 %c, label %yes, label %no\nyes:\nunreachable\n"
        "no:\nret void\n}",
    ),
    "a function that is called on a condition": (
        "d:a",
        "%c = icmp eq i32 %a, 0\nbr i1 %c, label %yes, label %no\nyes:\ncall void @f(ptr %d, i32 %v)\nbr label %no\n"
        "no:\nret void",
        "define void @f(ptr %p, i32 %x) {\nstore i32 %x, ptr %p\nret void\n}",
    ),
    "what a function returns, and by which way": (
        "d:a",
        "%i = call i32 @f(i32 %a)\n%p = getelementptr i32, ptr %d, i32 %i\nstore i32 %v, ptr %p\nret void",
        "define i32 @f(i32 %x) {\n%c = icmp eq i32 %x, 0\nbr i1 %c, label %yes, label %no\nyes:\nret i32 1\n"
        "no:\nret i32 2\n}",
    ),
    "atomicAdd": ("d:", "%o = atomicrmw add ptr %d, i32 %v seq_cst\nret void", ""),
    "atomicCAS": ("d:b", "%o = cmpxchg ptr %d, i32 %b, i32 %v seq_cst seq_cst\nret void", ""),
    "assembly that ends a thread": (
        "d:a",
        'call void asm sideeffect "{ .reg .pred p; setp.ne.s32 p, $0, 0; @p exit; }", "r"(i32 %a)\n'
        "store i32 %v, ptr %d\nret void",
        "",
    ),
    "the stack": (
        "d:ab",
        "%m = alloca [8 x i32]\n%p = getelementptr i32, ptr %m, i32 %a\nstore i32 %b, ptr %p\n%i = load i32, ptr %m\n"
        "%q = getelementptr i32, ptr %d, i32 %i\nstore i32 %v, ptr %q\nret void",
        "",
    ),
    "the stack, changed on a condition": (
        "d:a",
        "%m = alloca i32\nstore i32 0, ptr %m\n%c = icmp eq i32 %a, 0\nbr i1 %c, label %yes, label %no\nyes:\n"
        "store i32 1, ptr %m\nbr label %no\nno:\n%i = load i32, ptr %m\n%q = getelementptr i32, ptr %d, i32 %i\n"
        "store i32 %v, ptr %q\nret void",
        "",
    ),
    "shared memory": (
        "d:a",
        "store i32 %a, ptr addrspace(3) @shared\n%i = load i32, ptr addrspace(3) @shared\n"
        "%q = getelementptr i32, ptr %d, i32 %i\nstore i32 %v, ptr %q\nret void",
        "",
    ),
    "memory of the device's heap": (
        "d:a",
        "%m = call ptr @malloc(i64 8)\nstore i32 %a, ptr %m\n%i = load i32, ptr %m\n"
        "%q = getelementptr i32, ptr %d, i32 %i\nstore i32 %v, ptr %q\nret void",
        "",
    ),
    "a pointer on the stack": (
        "d:a",
        "%m = alloca ptr\n%p = getelementptr i32, ptr %d, i32 %a\nstore ptr %p, ptr %m\n%q = load ptr, ptr %m\n"
        "store i32 %v, ptr %q\nret void",
        "",
    ),
    "an address that is a number on the stack": (
        "d:av",  # such an address may be any, and so may be what is stored there
        "%m = alloca i64\n%n = ptrtoint ptr %d to i64\nstore i64 %n, ptr %m\n%o = load i64, ptr %m\n"
        "%q = inttoptr i64 %o to ptr\n%p = getelementptr i32, ptr %q, i32 %a\nstore i32 %v, ptr %p\n"
        "store i32 %v, ptr %d\nret void",
        "",
    ),
    "fields of a structure": (
        "s:s+8",
        "%p = load ptr, ptr %s\n%f = getelementptr i8, ptr %s, i64 8\n%i = load i32, ptr %f\n"
        "%g = getelementptr i8, ptr %s, i64 12\n%x = load i32, ptr %g\n%q = getelementptr i32, ptr %p, i32 %i\n"
        "store i32 %x, ptr %q\nret void",
        "",
    ),
    "a structure that is changed": (
        "d:ass+8",
        "%f = getelementptr i8, ptr %s, i64 8\nstore i32 %a, ptr %f\n%i = load i32, ptr %f\n"
        "%q = getelementptr i32, ptr %d, i32 %i\nstore i32 %v, ptr %q\nret void",
        "",
    ),
    "a structure that is copied": (
        "d:s",
        "%m = alloca %struct.S\ncall void @llvm.memcpy.p0.p0.i64(ptr %m, ptr %s, i64 16, i1 false)\n"
        "%f = getelementptr i8, ptr %m, i64 8\n%i = load i32, ptr %f\n%q = getelementptr i32, ptr %d, i32 %i\n"
        "store i32 %v, ptr %q\nret void",
        "",
    ),
    "the pointer in a structure that is copied": (
        "d:avs",  # the pointer may be any, so that what is done with it counts for all
        "%m = alloca %struct.S\ncall void @llvm.memcpy.p0.p0.i64(ptr %m, ptr %s, i64 16, i1 false)\n"
        "%p = load ptr, ptr %m\n%q = getelementptr i32, ptr %p, i32 %a\nstore i32 %v, ptr %q\nstore i32 %v, ptr %d\n"
        "ret void",
        "",
    ),
    "the pointer in a structure that is changed somewhere": (
        "d:eabvs e:abvs",
        "store ptr %e, ptr %s\n%f = getelementptr i8, ptr %s, i32 %b\n%p = load ptr, ptr %f\n"
        "%q = getelementptr i32, ptr %p, i32 %a\nstore i32 %v, ptr %q\nstore i32 %v, ptr %d\nret void",
        "",
    ),
    "a symbol": (
        "symbol:a",
        "%p = getelementptr i32, ptr addrspacecast (ptr addrspace(1) @symbol to ptr), i32 %a\nstore i32 %v, ptr %p\n"
        "ret void",
        "",
    ),
    "a symbol at one place": ("symbol:", "store i32 %v, ptr addrspace(1) @symbol\nret void", ""),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_decides_where_a_kernel_goes(name: str) -> None:
    expected, body, functions = KERNELS[name]
    found = kernel_steering(f"{PRELUDE}\n{KERNEL}\n{body}\n}}\n{functions}\n")["k"]
    told = []
    for root, steering in found.items():
        own = root if isinstance(root, str) else NAMES[root[0]]
        words = [
            f"{NAMES[one.argument]}{f'+{one.start}' if one.start else ''}"
            for one in sorted(steering)
            if isinstance(root, str) or (one.argument, one.start) != root
        ]
        told.append(f"{own}:{''.join(sorted(words, key=lambda w: NAMES.index(w[0])))}")
    assert sorted(told) == sorted(expected.split())
