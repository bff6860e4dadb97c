// As in calls_that_call_themselves, but what the calls lead to meets further down: each pair must stay in order.
#include <cstdio>
#include <cstdlib>

__global__ void add(float* to, const float* from, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] += from[i];
}

// The last of the calls works on what all share.
void shared_at_the_end(float* u, float* shared, int depth) {
  add<<<256, 256>>>(u, u, 1 << 16);
  if (depth > 0)
    shared_at_the_end(u, shared, depth - 1);
  else
    add<<<256, 256>>>(shared, u, 1 << 16);
}

// Each call gives the other one's memory to the next.
void in_turns(float* u, float* v, int depth) {
  add<<<256, 256>>>(u, u, 1 << 16);
  if (depth > 0) in_turns(v, u, depth - 1);
}

// Two functions, one of which leads to what both calls write.
float* total;
void second(float* u, int depth);
void first(float* u, int depth) {
  add<<<256, 256>>>(u, u, 1 << 16);
  if (depth > 0) second(u, depth - 1);
}
void second(float* u, int depth) {
  if (depth > 0) first(u, depth - 1);
  add<<<256, 256>>>(total, u, 1 << 16);
}

// The host waits at the end of the calls, for the whole device.
float read_at_the_end(float* u, int depth) {
  add<<<256, 256>>>(u, u, 1 << 16);
  if (depth > 0) return read_at_the_end(u, depth - 1);
  float found;
  cudaMemcpy(&found, u, sizeof(float), cudaMemcpyDeviceToHost);
  return found;
}

int main(int argc, char** argv) {
  const int bytes = sizeof(float) << 16, depth = atoi(argv[1]);
  float *u, *v, *shared;
  cudaMalloc(&u, bytes);
  cudaMalloc(&v, bytes);
  cudaMalloc(&shared, bytes);
  cudaMalloc(&total, bytes);
  for (float* one : {u, v, shared, total}) cudaMemset(one, 0, bytes);
  shared_at_the_end(u, shared, depth);
  shared_at_the_end(v, shared, depth);
  cudaDeviceSynchronize();
  in_turns(u, v, depth);
  in_turns(v, u, depth);
  cudaDeviceSynchronize();
  first(u, depth);
  first(v, depth);
  cudaDeviceSynchronize();
  float a = read_at_the_end(u, depth);
  float b = read_at_the_end(u, depth);
  printf("%f %f\n", a, b);
}
