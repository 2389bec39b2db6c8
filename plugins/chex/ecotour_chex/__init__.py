"""A museum of faults, and the Chex tool that catches each. The tutorial is in `demo.py`."""
