"""A run's directory: who owns it, and what the run writes into it and reads back.

From outside: `claim` (ownership), `record` (``run.json``), `metric_rows` (``metrics.jsonl``),
`stored_exhibits` (``exhibits/``, with `exhibit_json` and `values_json` for what is in a file),
`checkpoint` (states, with `frozen`), `continuation` (where to go on), `strict_json`, `files`.
Pictures and the page are drawn into it by `ecotour.drawing`. Stands on the contract, this machine
and the loop, whose history it keeps; the loop knows nothing of it.
"""
