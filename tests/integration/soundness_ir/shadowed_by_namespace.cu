// A variable of a namespace has the name of the global. Compared: ::p, c, q
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
float* p;
namespace A { float* p; void work(float* q, float* c) { k1<<<1, 1>>>(::p); k3<<<1, 1>>>(c); k2<<<1, 1>>>(q); } }
void elsewhere();  // so that other files may have called anything before
int main(int n, char**) { elsewhere(); float *x = nullptr, *y = nullptr, *z = nullptr;
  cudaMalloc(&x, 256); cudaMalloc(&y, 256); cudaMalloc(&z, 256);
  p = x; A::p = y; A::work(x, z);
return cudaDeviceSynchronize();
}
