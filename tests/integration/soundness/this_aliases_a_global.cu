// This aliases a global. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
struct S { float *a, *b; void set(float* q) { a = q; } void run(float* q); };
S G;
void S::run(float* q) { set(q); k1<<<1, 64>>>(G.a); k2<<<1, 64>>>(q); }
