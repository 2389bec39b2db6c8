"""The loop: a program and a plan in, events out. It prints, draws and writes nothing.

From outside: `ecotour.running.runner.run`, and `Resume`, `History` and `Stopwatch` for those who
go on with a run or keep its account. Stands on the contract and the datasets.
"""
