// REQUIRES: cuda-clang
// What the plugin has clang compile is kesco's text, in all passes; what is told comes from the first one alone.

// RUN: %clang %kesco -Rremark-backend-plugin -Wunused-variable -c %s -o %t.o 2> %t.err
// RUN: %filecheck %s < %t.err
// RUN: %nm %t.o | %filecheck %s --check-prefix=OBJECT
// OBJECT: U cudaStreamWaitEvent

// The same as kesco-clang++ makes, to the byte (but for clang's own number of the command).
// RUN: %clang %kesco -fuse-cuid=none -c %s -o %t.o && %wrapper -fuse-cuid=none -c %s -o %t.wrapper.o
// RUN: cmp %t.o %t.wrapper.o

// Switched off, it is not there; remarks are told only if they are asked for.
// RUN: env KESCO=off %clang %kesco -Rremark-backend-plugin -fuse-cuid=none -c %s -o %t.o 2> %t.err && test ! -s %t.err
// RUN: %clang -fuse-cuid=none -c %s -o %t.plain.o && cmp %t.o %t.plain.o
// RUN: %clang %kesco -fsyntax-only %s 2> %t.err && test ! -s %t.err

// Several sources, one of them C++; dependencies; a file of arguments; kesco leaves nothing behind.
// RUN: rm -rf %t && mkdir -p %t/tmp && cp %s %t/a.cu && cp %s %t/b.cpp && echo "int plain;" > %t/c.cpp
// RUN: echo "%kesco -MMD -c a.cu -xcuda b.cpp -xc++ c.cpp" > %t/words && cd %t && env TMPDIR=%t/tmp %clang @words
// RUN: ls %t/tmp/* | %filecheck %s --check-prefix=LEFT --allow-empty
// RUN: %nm %t/a.o %t/b.o %t/c.o | %filecheck %s --check-prefix=SEVERAL
// RUN: cat %t/a.d | %filecheck %s --check-prefix=DEPENDENCIES
// LEFT-NOT: {{[0-9]}}
// SEVERAL: a.o
// SEVERAL: U cudaStreamWaitEvent
// SEVERAL: b.o
// SEVERAL: U cudaStreamWaitEvent
// SEVERAL: c.o
// DEPENDENCIES: a.o: a.cu
// DEPENDENCIES-NOT: kesco

__global__ void fill(float *out, float value) { out[threadIdx.x] = value; }
__global__ void add(const float *a, const float *b, float *out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

// CHECK: schedule_action.cu:37:1: remark: 'main': 3 operations on 2 streams, 1 wait, proven [-Rremark-backend-plugin]
int main() {
    float *x, *y, *z;
    cudaMalloc(&x, 1024);
    cudaMalloc(&y, 1024);
    cudaMalloc(&z, 1024);
    fill<<<1, 256>>>(x, 1.0f);
    // CHECK: schedule_action.cu:45:9: warning: unused variable 'second'
    // CHECK-NEXT: int second = 1; fill<<<1, 256, 0, kesco->stream[1]>>>(y, 2.0f);
    int second = 1; fill<<<1, 256>>>(y, 2.0f);
    add<<<1, 256>>>(x, y, z);
    cudaDeviceSynchronize();
    return 0;
}

// CHECK: compiling for sm_75
// CHECK-NOT: remark
// CHECK: unused variable 'second'
// CHECK-NEXT: kesco->stream[1]
// CHECK: compiling for host.
// CHECK-NOT: {{.}}
