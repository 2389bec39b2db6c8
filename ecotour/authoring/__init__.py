"""Tools for authors: a new plugin from templates, source as cells, a record as page or notebook.

From outside: `scaffold`, `cells`, `export`. Stands on the demos' discovery, the run's directory,
the drawings and the records.
"""
