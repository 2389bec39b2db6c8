"""The version of ecotour, where the package and its records take it from."""

__version__ = "0.1.0"
