// What is behind a pointer that may be null cannot be compared before the function has looked. Compared: nothing
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
struct Node { float *a, *b; Node* next; };
void work(Node* n) {
  if (n == nullptr) return;
  k1<<<1, 1>>>(n->a);
  k2<<<1, 1>>>(n->b);
}
void deeper(Node& n) {
  if (n.next == nullptr) return;
  k1<<<1, 1>>>(n.a);
  k2<<<1, 1>>>(n.next->b);
}
