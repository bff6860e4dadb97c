// REQUIRES: cuda-clang
// kesco's warnings and remarks obey Clang's options, and are told again where the answer is known from before.

// RUN: %clang %kesco -fsyntax-only %s 2>&1 | %filecheck %s
// RUN: %clang %kesco -fsyntax-only %s 2>&1 | %filecheck %s
// RUN: %clang %kesco -fsyntax-only -Wno-backend-plugin %s 2> %t.err && test ! -s %t.err
// RUN: %clang %kesco -fsyntax-only -w -Rremark-backend-plugin %s 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: not %clang %kesco -fsyntax-only -Werror %s 2>&1 | %filecheck %s --check-prefix=ERROR
// RUN: %clang %kesco -fsyntax-only -Werror -Wno-error=backend-plugin %s 2>&1 | %filecheck %s

__global__ void square(const float *x, float *y);

// REMARK-NOT: warning
// REMARK: diagnostics.cu:16:1: remark: 'launch' stays serial: it is not known whether {{.*}}'square#1' touches {{.*}} [K204]
// REMARK-NEXT: {{.*}}void launch(const float *x, float *y) {
void launch(const float *x, float *y) {
    // CHECK: diagnostics.cu:21:5: warning: 'square#1' {{.*}} [K203] [-Wbackend-plugin]
    // CHECK-NEXT: square<<<1, 256>>>(x, y);
    // CHECK: note: help:
    // ERROR: diagnostics.cu:21:5: error: 'square#1' {{.*}} [K203] [-Werror,-Wbackend-plugin]
    square<<<1, 256>>>(x, y);
    // CHECK: diagnostics.cu:23:5: warning: 'square#2'
    square<<<1, 256>>>(x, y);
}
// CHECK: 2 warnings generated when compiling for sm_75.
// CHECK-NOT: {{.}}
