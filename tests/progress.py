"""A progress that notes what it hears."""

from contextlib import contextmanager


class Heard:
    """Its stages are lists of a name, a total and the amount done; each amount is also given to a function."""

    def __init__(self, hear=lambda _: None):
        self.stages, self._hear = [], hear

    @contextmanager
    def stage(self, name, total=None):
        self.stages.append([name, total, 0])

        def advance(amount):
            self.stages[-1][2] += amount
            self._hear(amount)

        yield advance
