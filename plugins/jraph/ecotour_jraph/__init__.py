"""Graph networks: one small graph, and many of different sizes. The tutorial is in `demo.py`."""
