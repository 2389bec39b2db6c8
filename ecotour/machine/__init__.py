"""This machine: versions, processor, cores, devices, and where it keeps what can be made again.

From outside: `environment`, `backend` and `variables` (what keeps JAX from starting), and `version`
(ecotour's own). Stands on the errors alone.
"""
