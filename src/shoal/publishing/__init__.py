"""Publishing: the one door out. Only this room writes published data."""

__all__: list[str] = []
