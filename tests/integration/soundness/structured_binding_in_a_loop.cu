// A range-based for takes structs apart, and changes them. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct Two { float *a, *b; };
int main(int argc, char**) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  Two s[2] = {{x, y}, {z, y}};
  for (auto& [first, second] : s) first = second;
  k1<<<1, 64>>>(s[0].a);
  k2<<<1, 64>>>(y);
  k3<<<1, 64>>>(z);
  cudaDeviceSynchronize();
}
