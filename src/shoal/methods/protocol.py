"""What every method is: a frozen parameter object with one verb."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from shoal.errors import TooFewUsers
from shoal.memory import human_bytes
from shoal.progress import SILENT
from shoal.settings import Settings

if TYPE_CHECKING:
    from shoal.progress import Progress
    from shoal.release import Claim, Release
    from shoal.trajectories import Trajectories

__all__ = ["Estimate", "Method"]


@dataclass(frozen=True)
class Estimate:
    """What a run would take, roughly: for a dry run, and to refuse what won't fit."""

    memory_bytes: int
    seconds: float

    def table(self) -> list[tuple[str, str]]:
        """Give the lines to print."""
        minutes = f"{self.seconds / 60:.0f} min" if self.seconds >= 90 else f"{max(1, round(self.seconds))} s"
        return [("memory", human_bytes(self.memory_bytes)), ("time", minutes)]


class Method(Settings):
    """A way to turn trajectories into a release in which everyone is hidden among at least `k`."""

    name: ClassVar[str]
    resumable: ClassVar[bool] = False  # whether `anonymize` takes a `store` of finished parts
    k: Annotated[int, Field(ge=2, le=1000)] = 2

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """What its releases promise."""

    @abstractmethod
    def anonymize(self, people: Trajectories, *, threads: int | None = None, progress: Progress = SILENT) -> Release:
        """Give the release; the records depend on people and parameters only, never on threads or a seed."""

    @abstractmethod
    def estimate(self, people: Trajectories, *, threads: int | None = None) -> Estimate:
        """Give what `anonymize` would take, within a factor of two or so."""

    def require_enough(self, people: Trajectories) -> None:
        """Raise TooFewUsers unless there are at least k people to hide among."""
        if len(people) < self.k:
            raise TooFewUsers(
                f"{len(people)} users are left after cleaning, but k = {self.k} needs at least {self.k}; "
                "lower k or loosen --min-samples, --bbox and --period"
            )
