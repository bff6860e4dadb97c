// Clang's CUDA wrapper includes this cuRAND header last. Where cuRAND is not installed it is absent, and that does no
// harm. Here is also what nvcc declares before the first line of every file and Clang's wrapper does not: time.h, and
// min and max for the host.
#pragma once
#if __has_include_next(<curand_mtgp32_kernel.h>)
#include_next <curand_mtgp32_kernel.h>
#endif
#ifndef KESCO_LIKE_NVCC // another installation of kesco may have its copy of this on the include path
#define KESCO_LIKE_NVCC
#include <string.h>
#include <time.h>

#pragma push_macro("min")
#pragma push_macro("max")
#pragma push_macro("KESCO_HOST")
#undef min
#undef max
#define KESCO_HOST(R, A, B)                                                              \
  static inline __attribute__((host)) R min(A a, B b) { return (R)a < (R)b ? (R)a : (R)b; } \
  static inline __attribute__((host)) R max(A a, B b) { return (R)a > (R)b ? (R)a : (R)b; }
KESCO_HOST(int, int, int)
KESCO_HOST(unsigned, unsigned, unsigned)
KESCO_HOST(unsigned, int, unsigned)
KESCO_HOST(unsigned, unsigned, int)
KESCO_HOST(long, long, long)
KESCO_HOST(unsigned long, unsigned long, unsigned long)
KESCO_HOST(unsigned long, long, unsigned long)
KESCO_HOST(unsigned long, unsigned long, long)
KESCO_HOST(long long, long long, long long)
KESCO_HOST(unsigned long long, unsigned long long, unsigned long long)
KESCO_HOST(unsigned long long, long long, unsigned long long)
KESCO_HOST(unsigned long long, unsigned long long, long long)
KESCO_HOST(float, float, float)
KESCO_HOST(double, double, double)
KESCO_HOST(double, float, double)
KESCO_HOST(double, double, float)
#undef KESCO_HOST
#pragma pop_macro("KESCO_HOST")
#pragma pop_macro("max")
#pragma pop_macro("min")
#endif
