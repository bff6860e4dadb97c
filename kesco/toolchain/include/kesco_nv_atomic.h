// The atomic built-ins of nvcc from CUDA 12.8 on, by clang's. What they read and write is the same; their scope is
// taken for the widest one, which orders more.
#pragma once
#ifndef __NV_ATOMIC_RELAXED
enum {
  __NV_ATOMIC_RELAXED = __ATOMIC_RELAXED,
  __NV_ATOMIC_CONSUME = __ATOMIC_CONSUME,
  __NV_ATOMIC_ACQUIRE = __ATOMIC_ACQUIRE,
  __NV_ATOMIC_RELEASE = __ATOMIC_RELEASE,
  __NV_ATOMIC_ACQ_REL = __ATOMIC_ACQ_REL,
  __NV_ATOMIC_SEQ_CST = __ATOMIC_SEQ_CST,
  __NV_THREAD_SCOPE_THREAD = 0,
  __NV_THREAD_SCOPE_BLOCK = 1,
  __NV_THREAD_SCOPE_CLUSTER = 2,
  __NV_THREAD_SCOPE_DEVICE = 3,
  __NV_THREAD_SCOPE_SYSTEM = 4
};

template <typename T>
struct __kesco_plain {
  typedef T type;
};
template <typename T>
struct __kesco_plain<volatile T> {
  typedef T type;
};

#pragma push_macro("KESCO_ATOMIC")
#pragma push_macro("KESCO_OF")
#pragma push_macro("KESCO_FETCH")
#undef KESCO_ATOMIC
#undef KESCO_OF
#undef KESCO_FETCH
#define KESCO_ATOMIC template <typename T> static inline __attribute__((device, always_inline))
#define KESCO_OF(T) typename __kesco_plain<T>::type

KESCO_ATOMIC void __nv_atomic_load(T* p, KESCO_OF(T)* found, int order, int = 4) { __atomic_load(p, found, order); }
KESCO_ATOMIC KESCO_OF(T) __nv_atomic_load_n(T* p, int order, int = 4) {
  KESCO_OF(T) found;
  __atomic_load(p, &found, order);
  return found;
}
KESCO_ATOMIC void __nv_atomic_store(T* p, KESCO_OF(T)* v, int order, int = 4) { __atomic_store(p, v, order); }
KESCO_ATOMIC void __nv_atomic_store_n(T* p, KESCO_OF(T) v, int order, int = 4) { __atomic_store(p, &v, order); }
KESCO_ATOMIC void __nv_atomic_exchange(T* p, KESCO_OF(T)* v, KESCO_OF(T)* found, int order, int = 4) {
  __atomic_exchange(p, v, found, order);
}
KESCO_ATOMIC KESCO_OF(T) __nv_atomic_exchange_n(T* p, KESCO_OF(T) v, int order, int = 4) {
  KESCO_OF(T) found;
  __atomic_exchange(p, &v, &found, order);
  return found;
}
KESCO_ATOMIC bool __nv_atomic_compare_exchange(T* p, KESCO_OF(T)* expected, KESCO_OF(T)* v, bool weak, int order,
                                               int otherwise, int = 4) {
  return __atomic_compare_exchange(p, expected, v, weak, order, otherwise);
}
KESCO_ATOMIC bool __nv_atomic_compare_exchange_n(T* p, KESCO_OF(T)* expected, KESCO_OF(T) v, bool weak, int order,
                                                 int otherwise, int = 4) {
  return __atomic_compare_exchange(p, expected, &v, weak, order, otherwise);
}
#define KESCO_FETCH(NAME)                                                                \
  KESCO_ATOMIC KESCO_OF(T) __nv_atomic_fetch_##NAME(T* p, KESCO_OF(T) v, int order, int = 4) { \
    return __atomic_fetch_##NAME(p, v, order);                                           \
  }                                                                                      \
  KESCO_ATOMIC void __nv_atomic_##NAME(T* p, KESCO_OF(T) v, int order, int = 4) { __atomic_fetch_##NAME(p, v, order); }
KESCO_FETCH(add)
KESCO_FETCH(sub)
KESCO_FETCH(and)
KESCO_FETCH(or)
KESCO_FETCH(xor)
KESCO_FETCH(min)
KESCO_FETCH(max)
static inline __attribute__((device, always_inline)) void __nv_atomic_thread_fence(int order, int = 4) {
  __atomic_thread_fence(order);
}
#undef KESCO_FETCH
#undef KESCO_OF
#undef KESCO_ATOMIC
#pragma pop_macro("KESCO_FETCH")
#pragma pop_macro("KESCO_OF")
#pragma pop_macro("KESCO_ATOMIC")
#endif
