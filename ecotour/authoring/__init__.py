"""Tools for authors: a new plugin from templates, source as cells, a run as a page or a notebook.

From outside: `scaffold`, `cells`, `export`. Stands on the records and the drawings.
"""
