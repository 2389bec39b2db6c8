"""Reinforcement learning's building blocks on Catch. The tutorial is in `demo.py`."""
