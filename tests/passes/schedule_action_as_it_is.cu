// REQUIRES: cuda-clang, thorough
// Where kesco has no text, all passes compile the source, and one line says why; -Werror does not make it an error.

// RUN: env KESCO_PROGRAM=%t.none %clang %kesco -Werror -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=MISSING
// MISSING: remark: {{.*}}as_it_is.cu: compiled as it is [K701]: kesco itself failed: {{.*}}No such file or directory
// MISSING-NOT: {{.}}

// RUN: printf '#!/bin/sh\necho one >&2; echo two >&2; exit 3\n' > %t.sh && chmod +x %t.sh
// RUN: env KESCO_PROGRAM=%t.sh %clang %kesco -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=FAILS
// FAILS: compiled as it is [K701]: kesco itself failed: two
// FAILS-NOT: {{.}}

// RUN: env KESCO_TIMEOUT=0.01 %clang %kesco -DLATE -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=LATE
// LATE: compiled as it is [K701]: kesco took more than 0.01 s; set KESCO_TIMEOUT to more
// LATE-NOT: {{.}}

// The text has a call of snprintf, which the source has not.
// RUN: %clang %kesco -Werror=unsafe-buffer-usage-in-libc-call -fsyntax-only %s 2>&1 \
// RUN:   | %filecheck %s --check-prefix=REFUSED
// REFUSED: compiled as it is [K701]: clang does not compile the rewritten text [K703]
// REFUSED-NOT: {{.}}

// One side alone, preprocessed text, the standard input, another file system: kesco has no say.
// RUN: %clang %kesco --offload-device-only -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=SIDE
// RUN: %clang %kesco --offload-host-only -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=SIDE
// SIDE: compiled as it is [K701]: only one side of it is compiled by this command
// SIDE-NOT: {{.}}
// RUN: rm -rf %t && mkdir %t && cd %t && %clang %kesco -save-temps -c %s -o it.o 2>&1 | %filecheck %s --check-prefix=TEXT
// TEXT: remark: {{.*}}: compiled as it is [K701]: it has been preprocessed
// TEXT-NOT: {{.}}
// RUN: %clang %kesco -x cuda -fsyntax-only - < %s 2>&1 | %filecheck %s --check-prefix=INPUT
// INPUT: compiled as it is [K701]: it is no file
// INPUT-NOT: {{.}}
// RUN: echo '{"version": 0, "roots": []}' > %t.yaml
// RUN: %clang %kesco -ivfsoverlay %t.yaml -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=OVERLAY
// OVERLAY: compiled as it is [K701]: clang sees another file system than kesco
// OVERLAY-NOT: {{.}}
// RUN: echo "-DCONFIGURED" > %t.cfg
// RUN: %clang %kesco --config=%t.cfg -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=CONFIGURED
// CONFIGURED: compiled as it is [K701]: clang reads a configuration file, which kesco does not
// CONFIGURED-NOT: {{.}}

// Clang's errors are Clang's; a wrong setting is an error.
// RUN: not %clang %kesco -DMISTAKE=nothing -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=MISTAKE
// MISTAKE: compiled as it is [K701]: {{.*}} use of undeclared identifier 'nothing' [K100]
// MISTAKE: error: use of undeclared identifier 'nothing'
// RUN: not %clang %kesco -fplugin-arg-kesco-streams=many -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=SETTING
// RUN: not env KESCO_FLAGS=--streams=many %clang %kesco -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=SETTING
// SETTING: error: {{.*}}--streams is 'many': it is a number from 1 to 64 [K702]

// A folder that another user might write to, or that is not there: what the passes before this one had is not known.
// RUN: rm -rf %t && mkdir %t && sh -c 'mkdir %t/kesco-plugin-$(id -u); chmod 777 %t/kesco-plugin-*'
// RUN: not env TMPDIR=%t %clang %kesco -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=FOLDER
// RUN: not env TMPDIR=%t/none %clang %kesco -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=FOLDER
// FOLDER: error: kesco cannot make all passes compile the same text [K705]: {{.*}}/kesco-plugin-

// Options in every form, and the compiler's flags: nothing to tell.
// RUN: %clang %kesco -fplugin-arg-kesco-streams=1 -fplugin-arg-kesco-force -Xclang -plugin-arg-kesco -Xclang --copies=keep \
// RUN:   -Rremark-backend-plugin -fsyntax-only %s 2>&1 | %filecheck %s --check-prefix=OPTIONS
// OPTIONS: as_it_is.cu:67:1: remark: 'main': 3 operations on 1 stream, 0 waits, proven

#ifndef MISTAKE
#define MISTAKE 0
#endif
__global__ void fill(float *out, float value) { out[threadIdx.x] = value; }
__global__ void add(const float *a, const float *b, float *out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
int main() {
    float *x, *y, *z;
    cudaMalloc(&x, 1024);
    cudaMalloc(&y, 1024);
    cudaMalloc(&z, 1024);
    fill<<<1, 256>>>(x, 1.0f);
    fill<<<1, 256>>>(y, 2.0f);
    add<<<1, 256>>>(x, y, z);
    cudaDeviceSynchronize();
    return MISTAKE;
}
