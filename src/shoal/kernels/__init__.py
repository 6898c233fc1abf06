"""Compiled kernels: they take and return arrays, import nothing else of shoal, never raise and never log."""

__all__: list[str] = []
