// Empty on purpose: Clang's CUDA wrapper includes this cuRAND header, which is absent where cuRAND is not installed.
