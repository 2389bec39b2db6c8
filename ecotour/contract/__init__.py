"""What authors write against: Demo, Program, Step, Check, exhibits and hooks; for sinks, events.

`plan` is what a run was asked to do; `flags` makes a demo's configuration of what was typed.
From outside use the public names (`ecotour`, `ecotour.exhibits`, `ecotour.events`); the core
imports from here. Stands on no other room.
"""
