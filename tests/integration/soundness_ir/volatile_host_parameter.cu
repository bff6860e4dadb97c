// The host parameter is volatile, the kernel one is not. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k3(float* q) { q[0] -= 3; }
void work(float* a, volatile float* flag, float* c) { k3<<<1, 1>>>(c); k1<<<1, 1>>>(a); k2<<<1, 1>>>((float*)flag); goto e; e: return; }
