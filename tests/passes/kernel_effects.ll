; RUN: %opt -load-pass-plugin %plugins/KernelEffects.so -passes=kernel-effects -disable-output %s | %filecheck %s
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @seen_nowhere(ptr)

; CHECK: "kernels": [

; A guard bounds the index from above; from below it may wrap around, which becomes a condition.
; CHECK: "name": "guarded"
; CHECK: "footprint": {
; CHECK: "fits": [
; CHECK: "at_most": 2147483647
; CHECK: "blockDim.x"
; CHECK: "gridDim.x"
; CHECK: "high": [
; CHECK: "s32 arg1"
; CHECK: "times": 4
; CHECK: "low": []
; CHECK: "mode": "rw"
define ptx_kernel void @guarded(ptr %x, i32 %n) {
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %block, %size
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = add i32 %first, %thread
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %work, label %done
work:
  %wide = sext i32 %i to i64
  %at = getelementptr inbounds float, ptr %x, i64 %wide
  %old = load float, ptr %at
  store float %old, ptr %at
  br label %done
done:
  ret void
}

; The test is on the other edge: nothing bounds the access but the launch.
; CHECK: "name": "other_edge"
; CHECK: "high": [
; CHECK-NOT: arg1
; CHECK: "low"
; CHECK: "mode": "w"
define ptx_kernel void @other_edge(ptr %x, i32 %n) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %done, label %work
work:
  %wide = zext i32 %i to i64
  %at = getelementptr inbounds float, ptr %x, i64 %wide
  store float 0.0, ptr %at
  br label %done
done:
  ret void
}

; CHECK: "name": "escaping"
; CHECK: "escapes": true
; CHECK: "footprint": null
define ptx_kernel void @escaping(ptr %x) {
  call void @seen_nowhere(ptr %x)
  ret void
}

; CHECK: "name": "through_a_function"
; CHECK: "escapes": false
; CHECK: "footprint": null
; CHECK: "mode": "r"
define internal float @first(ptr %p) {
  %v = load float, ptr %p
  ret float %v
}
define ptx_kernel void @through_a_function(ptr %x) {
  %v = call float @first(ptr %x)
  ret void
}

; An index out of memory is anywhere.
; CHECK: "name": "anywhere"
; CHECK: "footprint": null
; CHECK: "mode": "w"
define ptx_kernel void @anywhere(ptr %x, ptr %index) {
  %i = load i64, ptr %index
  %at = getelementptr inbounds float, ptr %x, i64 %i
  store float 0.0, ptr %at
  ret void
}

; CHECK: "version": 1
