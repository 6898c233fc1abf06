"""What every method is: a frozen parameter object with one verb."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from shoal.errors import TooFewUsers
from shoal.memory import human_bytes
from shoal.run import LOCAL, Run
from shoal.settings import Settings

if TYPE_CHECKING:
    from shoal.points import PointRelease
    from shoal.release import Claim, Release
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["BoxMethod", "CrowdMethod", "Estimate", "Method", "PointMethod"]


@dataclass(frozen=True)
class Estimate:
    """What a run would take, roughly: for a dry run, and to refuse what won't fit."""

    memory_bytes: int
    seconds: float

    def table(self) -> list[tuple[str, str]]:
        """Return the lines to print."""
        minutes = f"{self.seconds / 60:.0f} min" if self.seconds >= 90 else f"{max(1, round(self.seconds))} s"
        return [("memory", human_bytes(self.memory_bytes)), ("time", minutes)]


class Method(Settings):
    """What all methods share: a name, a claim, and whether they work on people's samples or on their fixes."""

    name: ClassVar[str]
    resumable: ClassVar[bool] = False  # whether `anonymize` takes a `store` of finished parts
    takes: ClassVar[Literal["samples", "fixes"]] = "samples"

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """What its releases promise; of `geo-indistinguishability`, what is known before there are people."""

    @property
    def among(self) -> int | None:
        """The least number of people everyone is hidden among; None for methods that do not hide people in crowds."""
        return None


class BoxMethod(Method):
    """A way to turn trajectories on the grid into a release of boxes."""

    less_loss: ClassVar[str] = "raise --max-span and --max-duration, or leave them out"  # advice if much is lost

    @abstractmethod
    def anonymize(self, people: Trajectories, *, run: Run = LOCAL) -> Release:
        """Return the release; the records depend on people and parameters only, never on threads or a seed."""

    @abstractmethod
    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return what `anonymize` would take, within a factor of two or so."""

    def require_enough(self, people: Trajectories) -> None:
        """Raise TooFewUsers unless there are at least k people to hide among."""
        if self.among is not None and len(people) < self.among:
            raise TooFewUsers(
                f"{len(people)} users are left after cleaning, but k = {self.among} needs at least {self.among}; "
                "lower k or loosen --min-samples, --bbox and --period"
            )


class CrowdMethod(BoxMethod):
    """A way to turn trajectories into a release in which everyone is hidden among at least `k`."""

    k: Annotated[int, Field(ge=2, le=1000)] = 2

    @property
    def among(self) -> int:
        """The least number of people everyone is hidden among."""
        return self.k


class PointMethod(Method):
    """A way to turn traces of real places and times into a release of points."""

    takes: ClassVar[Literal["samples", "fixes"]] = "fixes"

    @abstractmethod
    def anonymize(self, traces: Traces, *, seed: int | None = None, run: Run = LOCAL) -> PointRelease:
        """Return the release. Noise, if any, is the operating system's, unless a `seed` makes it repeatable."""

    @abstractmethod
    def estimate(self, traces: Traces, *, run: Run = LOCAL) -> Estimate:
        """Return what `anonymize` would take; the memory is an upper bound."""
