"""Gradient transformations compared on equal terms. The tutorial is in `demo.py`."""
