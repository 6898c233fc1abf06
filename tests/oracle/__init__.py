"""Slow, obvious twins of kernels and methods, written from the papers."""
