// Code that is not seen runs between the launches and may use the device: what is pending is joined to the default stream
// before it, and what follows comes after whatever it left behind.
__global__ void make(float* out) { out[threadIdx.x] = 1; }
__global__ void join(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }
void elsewhere();

int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  make<<<1, 32>>>(x);
  make<<<1, 32>>>(y);
  elsewhere();
  make<<<1, 32>>>(x);
  make<<<1, 32>>>(y);
  join<<<1, 32>>>(x, y);
  cudaDeviceSynchronize();
  return 0;
}
