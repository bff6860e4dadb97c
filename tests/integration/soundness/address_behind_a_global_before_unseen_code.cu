// unseen() may make p equal to y, through what a static variable points to: others can call given(). Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
struct Node {
  float** at;
};
static Node* first;
Node* given() { return first; }
void unseen(float* y);
int main() {
  float *x, *y;
  cudaMalloc(&x, 4), cudaMalloc(&y, 4);
  float* p = x;
  Node node;
  node.at = &p;
  first = &node;
  unseen(y);
  k1<<<1, 1>>>(p);
  k2<<<1, 1>>>(y);
  cudaDeviceSynchronize();
  return 0;
}
