// A struct of pointers that comes from outside goes to a kernel as a whole. It holds several pointers and cannot be
// compared with others at run time: the kernel counts as touching unknown memory, and only the rest is compared.
struct Pair {
  float* in;
  float* out;
};
struct Two {
  Pair inner;
  float* third;
};
__global__ void add(Pair p, float* q) { p.out[threadIdx.x] = p.in[threadIdx.x] + q[threadIdx.x]; }
__global__ void set(float* p) { p[threadIdx.x] = 1; }
Pair everywhere;

void by_reference(Pair& o, float* a, float* b) {
  add<<<1, 32>>>(o, a);
  set<<<1, 32>>>(a);
  set<<<1, 32>>>(b);
}

void global_one(float* a, float* b) {
  add<<<1, 32>>>(everywhere, a);
  set<<<1, 32>>>(a);
  set<<<1, 32>>>(b);
}

void inside_another(Two& o, float* a, float* b) {
  add<<<1, 32>>>(o.inner, a);
  set<<<1, 32>>>(o.inner.in);
  set<<<1, 32>>>(b);
}

struct Work : Pair {
  Pair inner;
  void member(float* a, float* b) {
    add<<<1, 32>>>(inner, a);
    set<<<1, 32>>>(a);
    set<<<1, 32>>>(b);
  }
  void itself(float* a, float* b) {
    add<<<1, 32>>>(*this, a);
    set<<<1, 32>>>(in);
    set<<<1, 32>>>(b);
  }
};
