"""Finds demos by their metadata, loads one by name, and contains what goes wrong in doing so.

From outside: `ecotour.discovery.registry` (entries and loading) and `ecotour.discovery.metadata`
(what is installed, read without importing it). Stands on the contract.
"""
