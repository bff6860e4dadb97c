// A dynamic_cast that fails gives null. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
struct A { virtual ~A() {} };
struct B : A {};
struct C : A {};
int main(int n, char**) {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  float* z = c;
  C o;
  B o2;
  A* a = n > 1 ? (A*)&o : (A*)&o2;
  if (!dynamic_cast<B*>(a)) z = d;
  k1<<<1, 32>>>(z);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
