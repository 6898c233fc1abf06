"""Publishing: the only package that writes published data."""

__all__: list[str] = []
