"""This machine: versions, processor, cores, devices, and where it keeps what can be made again.

From outside: `environment`, `variables` (those of JAX and XLA), and `version` (of ecotour itself).
Stands on no other room.
"""
