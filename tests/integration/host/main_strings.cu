// Strings beside pointers in classes: what a string's functions do leaves the rest of an object alone.
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

__global__ void k(float* p) { *p += 1; }

struct Layer {
  float* weights;
  std::string name;
  float* bias;
};

struct Named {
  std::string name = "none";
  float* at = nullptr;
};

int main(int argc, char** argv) {
  float* a;
  cudaMalloc(&a, 4);  // @a
  float* b;
  cudaMalloc(&b, 4);  // @b
  Layer one{a, "first", b};
  one.name = argv[0];
  one.name += "_" + std::to_string(argc);
  one.name.insert(0, "layer ");
  one.name.append(3, 'x').push_back('y');
  k<<<1, 1>>>(one.weights);  // = a
  k<<<1, 1>>>(one.bias);  // = b
  std::vector<Layer> layers{one};
  layers.push_back(std::move(one));
  k<<<1, 1>>>(layers[0].weights);  // = a
  k<<<1, 1>>>(layers[1].bias);  // = b
  std::cout << layers[1].name << ' ' << layers[0].name.size() << '\n';
  k<<<1, 1>>>(layers[1].weights);  // = a
  Named x, y;
  x.at = a, y.at = b;
  std::swap(x.name, y.name);
  x.name.swap(y.name);
  if (x.name.find("n") != std::string::npos && x.name == y.name) x.name.replace(0, 1, y.name);
  k<<<1, 1>>>(x.at);  // = a
  k<<<1, 1>>>(y.at);  // = b
  std::swap(x, y);
  k<<<1, 1>>>(x.at);  // = b
  std::vector<double> times(argc);
  std::sort(times.begin(), times.end());
  std::nth_element(times.begin(), times.begin() + 1, times.end(), std::greater<double>());
  k<<<1, 1>>>(y.at);  // = a
}
