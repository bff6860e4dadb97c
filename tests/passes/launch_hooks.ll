; RUN: %opt -load-pass-plugin %plugins/LaunchHooks.so -passes=launch-hooks,verify -S %s | %filecheck %s
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; One site for the launch in the stub, and one for the call of the stub.
; CHECK: @kesco_site = private constant {{.*}} section "kesco_launches"
; CHECK: @kesco_launch_site = linkonce_odr thread_local global ptr null
; CHECK: @kesco_site.{{.*}} = private constant {{.*}} section "kesco_launches"
; CHECK: @llvm.compiler.used = {{.*}}@kesco_site

declare i32 @cudaLaunchKernel(ptr, i64, i32, i64, i32, ptr, i64, ptr)

; CHECK: define void @_Z19__device_stub__workPf
; CHECK: icmp ne ptr @kesco_launch_before, null
; CHECK-NEXT: br i1 {{.*}}, label %{{.*}}, label %{{.*}}, !prof
; CHECK: call void @kesco_launch_before(
; CHECK: call i32 @cudaLaunchKernel(
; CHECK-NEXT: icmp ne ptr @kesco_launch_after, null
; CHECK-NEXT: br i1 {{.*}}, !prof
; CHECK: call void @kesco_launch_after(
define void @_Z19__device_stub__workPf(ptr %args, ptr %stream) {
  %r = call i32 @cudaLaunchKernel(ptr @_Z19__device_stub__workPf, i64 4294967301, i32 1, i64 32, i32 1, ptr %args, i64 0, ptr %stream)
  ret void
}

; The call of the stub says where the launch is written, right before it.
; CHECK: define void @caller
; CHECK: store ptr @kesco_site.{{.*}}, ptr @kesco_launch_site
; CHECK-NEXT: call void @_Z19__device_stub__workPf
define void @caller(ptr %args) {
  call void @_Z19__device_stub__workPf(ptr %args, ptr null)
  ret void
}

; CHECK: declare extern_weak void @kesco_launch_before(ptr, ptr)
