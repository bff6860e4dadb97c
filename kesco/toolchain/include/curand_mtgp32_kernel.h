// Clang's CUDA wrapper includes this cuRAND header last, with dim3 and uint3 defined as types of its own, and nvcc does
// not: programs ask whether cuRAND is there, and it may not be installed. So it comes when a program includes it, with
// the same two macros. Here is also what nvcc declares before the first line of every file and Clang's wrapper does not:
// time.h, min and max for the host, and loads and stores with a cache operator, which kesco reads as plain ones. As
// templates they give way to what Clang may declare one day.
#if !defined(dim3) && __has_include_next(<curand_mtgp32_kernel.h>)
#pragma push_macro("dim3")
#pragma push_macro("uint3")
#define dim3 __cuda_builtin_blockDim_t
#define uint3 __cuda_builtin_threadIdx_t
#include_next <curand_mtgp32_kernel.h>
#pragma pop_macro("dim3")
#pragma pop_macro("uint3")
#endif
#ifndef KESCO_LIKE_NVCC // another installation of kesco may have its copy of this on the include path
#define KESCO_LIKE_NVCC
#undef __cuda_cuda_h__
#include "kesco_nv_atomic.h"

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

template <typename T>
struct __kesco_same {
  typedef T type;
};
#pragma push_macro("KESCO_STORE")
#undef KESCO_STORE
#define KESCO_STORE(NAME) \
  template <typename T>   \
  static inline __attribute__((device)) void NAME(T* p, typename __kesco_same<T>::type v) { *p = v; }
KESCO_STORE(__stwb)
KESCO_STORE(__stcg)
KESCO_STORE(__stcs)
KESCO_STORE(__stwt)
#undef KESCO_STORE
#pragma pop_macro("KESCO_STORE")
template <typename T>
static inline __attribute__((device)) T __ldca(const T* p) { return *p; }
template <typename T>
static inline __attribute__((device)) T __ldlu(const T* p) { return *p; }
#endif
