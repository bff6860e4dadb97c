// golden: --emit graph
// A function that other files call again and again: a fence, a check of its pointers, and a graph.
__global__ void twice(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
__global__ void add(float* x, const float* y, const float* z) { x[threadIdx.x] = y[threadIdx.x] + z[threadIdx.x]; }

struct Solver {
  float *x, *y, *z;
  int n;
  void step(int block);
};

void Solver::step(int block) {
  twice<<<1, block>>>(y, n);
  twice<<<1, block>>>(z, n);
  add<<<1, block>>>(x, y, z);
}
