"""Several whole programs in one file, each a task with a host thread of its own.

In: programs with priorities. Out: one text that does what the programs do when they are started together. In order:

1. `specs`: what the command line says;
2. every program is compiled and proven by itself (`pipeline`);
3. `units`: what libclang says of the compiled text: files, macros, names, and what each name refers to;
4. `state`: what two programs in one process would share, from ``process_state.toml``; some of it refuses the merge;
5. `wrap`: the texts in namespaces, with their own headers put in and those of the system taken out;
6. `together`: the whole text, and the check that every name in it still means what it meant in its program.
"""
