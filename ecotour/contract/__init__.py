"""What authors write against: Demo, Program, Step, Check, exhibits, events, hooks and flags.

From outside use the public names (`ecotour`, `ecotour.exhibits`, `ecotour.events`); the core
imports from here. Stands on no other room.
"""
