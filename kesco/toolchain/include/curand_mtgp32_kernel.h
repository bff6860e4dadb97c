// Clang's CUDA wrapper includes this cuRAND header last. Where cuRAND is not installed it is absent, and that does no
// harm. nvcc does not include it, and programs ask whether cuRAND is there: KESCO_NO_CURAND is defined for those that do
// not include it themselves. Here is also what nvcc declares before the first line of every file and Clang's wrapper
// does not: time.h, min and max for the host, and loads and stores with a cache operator, which kesco reads as plain
// ones. As templates they give way to what Clang may declare one day.
#if __has_include_next(<curand_mtgp32_kernel.h>) && !defined(KESCO_NO_CURAND)
#include_next <curand_mtgp32_kernel.h>
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
