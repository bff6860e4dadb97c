// golden: --streams 3
// The published example of the distributor. Each kernel has an output of its own and reads those of its predecessors:
// A->D A->E A->G B->D C->E C->F F->G D->H D->I E->I E->J. With G issued last, A->G needs no wait: E and J are between.
__global__ void source(float* out) { out[threadIdx.x] = 1; }
__global__ void one(float* out, const float* a) { out[threadIdx.x] = a[threadIdx.x]; }
__global__ void two(float* out, const float* a, const float* b) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main() {
  float *a, *b, *c, *d, *e, *f, *g, *h, *i, *j;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  cudaMalloc(&d, 4096);
  cudaMalloc(&e, 4096);
  cudaMalloc(&f, 4096);
  cudaMalloc(&g, 4096);
  cudaMalloc(&h, 4096);
  cudaMalloc(&i, 4096);
  cudaMalloc(&j, 4096);
  source<<<1, 32>>>(a);
  source<<<1, 32>>>(b);
  source<<<1, 32>>>(c);
  two<<<1, 32>>>(d, a, b);
  two<<<1, 32>>>(e, a, c);
  one<<<1, 32>>>(f, c);
  one<<<1, 32>>>(h, d);
  two<<<1, 32>>>(i, d, e);
  one<<<1, 32>>>(j, e);
  two<<<1, 32>>>(g, a, f);
  cudaDeviceSynchronize();
  return 0;
}
