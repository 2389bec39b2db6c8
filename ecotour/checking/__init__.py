"""``ecotour check``: the contract, proved for one demo.

Each finding is one small function that looks for one fault; `ecotour.checking.table` holds them
all, in the order in which they are looked for. What they look at is a `Subject`: the demo, loaded
and run for a few steps through the ordinary runner, with the network off. `ecotour.checking.apart`
does all of this in a process of its own, so that a demo that ends its process, hangs or changes
JAX's settings is told of like any other.
"""
