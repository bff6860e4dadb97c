#ifndef SIZES_H
#define SIZES_H
#define COUNT 32
#define SIZE (COUNT * sizeof(float))
#endif
