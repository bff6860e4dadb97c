#pragma once

static __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }

inline void halve(float* x) { scale<<<1, 32>>>(x, 0.5f); }

template <typename T>
void twice(T* x) {
  scale<<<1, 32>>>(x, 2);
}

struct Steps {
  void thrice(float* x) { scale<<<1, 32>>>(x, 3); }
};

static void own(float* x) { scale<<<1, 32, 0, kesco_current()>>>(x, 4); }
