"""This machine: versions, processor, cores, devices, and where it keeps what can be made again.

From outside: `ecotour.machine.environment`. Stands on no other room.
"""
