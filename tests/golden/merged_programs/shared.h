#pragma once
#include <cstdio>
static int rounds = ROUNDS;
inline void said(const char* what, float value) { std::printf("%s: %d rounds, %g\n", what, rounds, value); }
