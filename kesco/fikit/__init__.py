"""Sharing one GPU among processes: what is measured of a task, the policy's library, and the simulator that replays it.

`store` and `kfikit` keep profiles of tasks, `policy` is the C++ library of ``kesco/runtime/fikit`` by way of ctypes,
`trace` and `simulate` replay a record of several tasks without a GPU.
"""
