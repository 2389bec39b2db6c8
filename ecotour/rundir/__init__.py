"""A run's directory: who owns it, and everything that is written into it and read back.

From outside: `claim` (ownership), `record` (``run.json``), `metric_rows` (``metrics.jsonl``),
`stored` (``exhibits/``), `checkpoint` (states), `continuation` (where to go on), `strict_json`.
Stands on the loop, whose values it keeps; the loop knows nothing of it.
"""
