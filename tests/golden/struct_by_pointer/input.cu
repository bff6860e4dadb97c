// Arrays in a struct that comes in by pointer: its members are compared at run time, where it is certainly followed.
struct Fields {
  float *density, *energy, *total;
  int n;
};
__global__ void decay(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 0.5f; }
__global__ void add(const float* a, const float* b, float* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}

void step(const Fields* now) {
  const int n = now->n;
  decay<<<1, 256>>>(now->density, n);
  decay<<<1, 256>>>(now->energy, n);
  add<<<1, 256>>>(now->density, now->energy, now->total, n);
}

void exchange(Fields* from, Fields* to) {
  add<<<1, 256>>>(from->density, from->energy, to->total, to->n);
  decay<<<1, 256>>>(from->total, from->n);
}

void maybe(Fields* now) {
  if (now == nullptr) return;
  decay<<<1, 256>>>(now->density, now->n);
  decay<<<1, 256>>>(now->energy, now->n);
}

void another(Fields* now) {
  decay<<<1, 256>>>(now->density, now->n);
  ++now;
  decay<<<1, 256>>>(now->energy, now->n);
}

void written(Fields* now, Fields* next) {
  decay<<<1, 256>>>(now->density, next->n);
  next->energy = now->total;
  decay<<<1, 256>>>(now->energy, now->n);
}

void once(Fields* now) {
  static const int n = now->n;
  decay<<<1, 256>>>(now != nullptr ? now->density : nullptr, n);
  decay<<<1, 256>>>(now != nullptr ? now->energy : nullptr, n);
}

void address(Fields* now) {
  float** energy = &now->energy;
  (void)now->n;
  if (energy == nullptr) return;
  decay<<<1, 256>>>(now->density, now->n);
  decay<<<1, 256>>>(now->total, now->n);
}
