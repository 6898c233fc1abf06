"""Compiled kernels: arrays in, arrays out. They import nothing else of shoal, never raise and never log."""

__all__: list[str] = []
