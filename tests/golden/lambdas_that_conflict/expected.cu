// As lambdas_that_launch, but calls need the one before: by what they are given, by what the lambda holds, and by what
// it refers to, which is changed in between. One buffer is nobody else's. What is given to code that is not seen may
// run at any time: all waits for it.
#include <functional>
__global__ void move(const float* from, float* to, float c) { to[threadIdx.x] = from[threadIdx.x] * c; }
__global__ void cut(float* p) { p[threadIdx.x] += 1; }
void unseen(const std::function<void()>& one);

// <prologue: 4 streams, 2 events>

int main() {
  float *u, *v, *w, *x;
  cudaMalloc(&u, 4096);
  cudaMalloc(&v, 4096);
  cudaMalloc(&w, 4096);
  cudaMalloc(&x, 4096);
  auto given = [](const float* from, float* to) { move<<<1, 256, 0, kesco_current()>>>(from, to, 2.0f); };
  KescoStreams* kesco = &kesco_streams();
  KescoOn(kesco->stream[0]), given(u, v);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: operator()#3 waits for this
  KescoOn(kesco->stream[0]), given(v, w);
  cudaEventRecord(kesco->done[1], kesco->stream[0]);  // kesco: operator()#5 waits for this
  cut<<<1, 256, 0, kesco->stream[1]>>>(x);
  auto held = [u] { cut<<<1, 256, 0, kesco_current()>>>(u); };
  cudaStreamWaitEvent(kesco->stream[2], kesco->done[0], 0);  // kesco: wait for operator()#1 (WAR on u)
  KescoOn(kesco->stream[2]), held();
  KescoOn(kesco->stream[2]), held();
  float* at = v;
  auto refers = [&at] { cut<<<1, 256, 0, kesco_current()>>>(at); };
  cudaStreamWaitEvent(kesco->stream[3], kesco->done[1], 0);  // kesco: wait for operator()#2 (WAR on v)
  KescoOn(kesco->stream[3]), refers();
  at = w;
  KescoOn(kesco->stream[0]), refers();
  at = v;
  KescoOn(kesco->stream[3]), refers();
  cudaDeviceSynchronize();
}

void escapes(float* u, float* v) {
  auto one = [u] { cut<<<1, 256>>>(u); };
  unseen(one);
  cut<<<1, 256>>>(u);
  cut<<<1, 256>>>(v);
  unseen(one);
}
