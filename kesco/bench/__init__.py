"""Side by side with the expert: the workloads in every variant, measured, checked, tabled and drawn.

In: the workloads' folder. Out: rows of times, as JSON, tables and SVG. In order of use:

1. `suite`: what is there to measure: workloads, memory styles, variants, sizes;
2. `build`: kesco and nvcc make the programs; they can be carried to a machine that has a GPU but no compilers;
3. `measure`: runs them, taking turns, and compares every result with the serial program's;
4. `results`: medians, spreads, ratios and means, and the JSON that keeps them;
5. `tables` and `plots` show them; `model` predicts them where there is no GPU.
"""
