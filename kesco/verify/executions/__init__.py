"""Executions are judged: one by itself, or a concurrent one beside a serial one.

In: `ir.execution.Execution`s. Out: what is ordered, what is a race, what is not known; and whether the concurrent
program does what the serial one does in an order that keeps its results. Beside `happens_before`, which proves regions
of a text that kesco wrote: that proof is stronger there, and this one reads any program.
"""
