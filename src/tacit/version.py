"""The version, in one place: the metadata of the package is built from it."""

__version__ = "0.1.0"
