"""Pictures of data-flow graphs: ``draw(functions, form)`` gives SVG, DOT or JSON.

In: the functions of one file. Out: text in the form asked for. JSON says all that is known and is versioned, for
programs; DOT is for graphviz; SVG stands for itself and is in `kesco.report.svg`'s stead drawn here, from a template.

Method:

1. Every pair of operations with a dependence becomes one `_Edge`: a wait that was kept, the order of one stream, or a
   wait that was not needed; carried where the source reaches its target only around a loop.
2. DOT and JSON write this down as it is.
3. For SVG the parts between full barriers are put one below another, each with its levels as rows, and laid out.

What it refuses to do: draw operations that stay on the default stream. They are barriers, shown as such.
"""
