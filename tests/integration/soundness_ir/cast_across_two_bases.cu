// A dynamic_cast across two bases moves the pointer. Ordered: k1, k2
__global__ void k1(float* p) { p[threadIdx.x] += 1; }
__global__ void k2(float* p) { p[threadIdx.x] *= 2; }
struct A { virtual ~A() {} float* p; };
struct B { virtual ~B() {} float* q; };
struct D : A, B {};
int main() {
  float *c, *d;
  cudaMalloc(&c, 256), cudaMalloc(&d, 256);
  D o;
  o.p = c;
  o.q = d;
  A* a = &o;
  B* b = dynamic_cast<B*>(a);
  k1<<<1, 32>>>(b->q);
  k2<<<1, 32>>>(d);
  return cudaDeviceSynchronize();
}
