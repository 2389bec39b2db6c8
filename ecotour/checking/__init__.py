"""``ecotour check``: the contract, proved for one demo.

A finding is looked for by a small function in `loading`, `purity` or `conduct`; `table` knows them
all (once they are imported: `fill`), in the order in which they are looked for. What they look at
is a `Subject`: the demo, loaded and run for a few steps through the ordinary runner, with the
network off. `ecotour.checking.apart` does all of this in a process of its own, so that a demo that
ends its process, hangs or changes JAX's settings is told of like any other.

From outside: `apart.check`, and `proving`, `settings`, `targets` for the test kit. Stands on the
loop, the run's directory and discovery.
"""
