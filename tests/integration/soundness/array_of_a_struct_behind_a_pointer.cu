// An element of an array in the struct that a pointer leads to, through a pointer to the first one. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
struct Fields { float* at[3]; };
void both(Fields* fields) {
  float** first = fields->at;
  k1<<<1, 64>>>(first[1]);
  k2<<<1, 64>>>(fields->at[1]);
}
int main() {
  Fields fields;
  for (int i = 0; i < 3; ++i) cudaMalloc(&fields.at[i], 256);
  both(&fields);
  return cudaDeviceSynchronize();
}
