"""Whether what was recorded once still holds.

From outside: `records` (read a record for documentation), `keep` (make one of a run), `identity`
(what a demo is now), `drift` (a record against a new run, for a docs site), `verify` (a run or a
record against a new run, to the last bit). Stands on the run's directory and the drawings, never on
the loop: a new run is made by the command itself, in a process of its own (`child`).
"""
