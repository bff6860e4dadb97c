// A function of the file that others call by a second name. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
static float *z, *c, *d;
static void turn() { z = d; }
extern "C" void turn_outside() __attribute__((alias("_ZL4turnv")));
void unseen();
int main() {
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  z = c;
  unseen();
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
