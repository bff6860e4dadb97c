// Methods that launch are operations on what their object's members point to; two objects may share an array.
__global__ void inc(float* x) { x[threadIdx.x] += 1; }
__global__ void add(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }

struct Solver {
  float *pressure, *heat;
  void stepA() { inc<<<1, 32>>>(pressure); }
  void stepB() { inc<<<1, 32>>>(heat); }
  void couple() { add<<<1, 32>>>(pressure, heat); }
};

int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
  Solver solver{x, y};
  for (int i = 0; i < argc; ++i) {
    solver.stepA();
    solver.stepB();
    solver.couple();
  }
  cudaDeviceSynchronize();
  Solver other{y, z};
  solver.stepB();
  other.stepA();
  other.stepB();
  cudaDeviceSynchronize();
  return 0;
}
