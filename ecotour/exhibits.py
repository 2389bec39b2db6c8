"""What a demo shows, under its public name; see `ecotour.contract.exhibits`."""

from ecotour.contract.exhibits import (
    ArrayLike,
    Bars,
    Code,
    Curves,
    Exhibit,
    Film,
    Graph,
    Heatmap,
    Images,
    Line,
    Paths,
    Table,
)

__all__ = [
    "ArrayLike",
    "Bars",
    "Code",
    "Curves",
    "Exhibit",
    "Film",
    "Graph",
    "Heatmap",
    "Images",
    "Line",
    "Paths",
    "Table",
]
