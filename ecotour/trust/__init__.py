"""Whether what was recorded once still holds: records for documentation, and their drift.

From outside: `records` (read one), `keep` (make one of a run), `drift` (compare one with a new
run). Stands on the run's directory and the drawings, never on the loop: a new run is made by the
command itself, in a process of its own (`child`).
"""
