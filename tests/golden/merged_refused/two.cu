#include <cstdlib>
#include <iostream>
__managed__ int shown;
int main() {
  std::srand(7);
  std::cout << shown << "\n";
  cudaDeviceReset();
  cudaSetDevice(1);
}
