"""JAX's own transformations, and what XLA makes of them. The tutorial is in `demo.py`."""
