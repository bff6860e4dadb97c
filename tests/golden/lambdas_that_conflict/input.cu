// As lambdas_that_launch, but calls need the one before: by what they are given, by what the lambda holds, and by what
// it refers to, which is changed in between. One buffer is nobody else's. What is given to code that is not seen may
// run at any time: all waits for it.
#include <functional>
__global__ void move(const float* from, float* to, float c) { to[threadIdx.x] = from[threadIdx.x] * c; }
__global__ void cut(float* p) { p[threadIdx.x] += 1; }
void unseen(const std::function<void()>& one);

int main() {
  float *u, *v, *w, *x;
  cudaMalloc(&u, 4096);
  cudaMalloc(&v, 4096);
  cudaMalloc(&w, 4096);
  cudaMalloc(&x, 4096);
  auto given = [](const float* from, float* to) { move<<<1, 256>>>(from, to, 2.0f); };
  given(u, v);
  given(v, w);
  cut<<<1, 256>>>(x);
  auto held = [u] { cut<<<1, 256>>>(u); };
  held();
  held();
  float* at = v;
  auto refers = [&at] { cut<<<1, 256>>>(at); };
  refers();
  at = w;
  refers();
  at = v;
  refers();
  cudaDeviceSynchronize();
}

void escapes(float* u, float* v) {
  auto one = [u] { cut<<<1, 256>>>(u); };
  unseen(one);
  cut<<<1, 256>>>(u);
  cut<<<1, 256>>>(v);
  unseen(one);
}
