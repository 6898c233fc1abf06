"""Stores: databases and object stores, by their addresses. They know nothing of how releases are made or checked."""

__all__: list[str] = []
