"""This machine: versions, processor, cores, devices, and where it keeps what can be made again.

From outside: `environment`, and `version` (ecotour's own). Stands on no other room.
"""
