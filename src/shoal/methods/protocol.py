"""The interface of all methods: a frozen parameter object that describes itself, with one verb."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.errors import SettingsError, TooFewUsers
from shoal.layouts import Boxes, Points
from shoal.memory import human_bytes
from shoal.run import LOCAL, Run
from shoal.settings import Settings, setting
from shoal.traces import Traces
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from shoal.claim import Claim
    from shoal.layouts import Layout
    from shoal.reading.events import Input
    from shoal.reading.options import ReadOptions
    from shoal.release import Release

__all__ = ["CrowdMethod", "Estimate", "Method", "PointMethod"]


@dataclass(frozen=True)
class Estimate:
    """The rough time and memory of a run: for dry runs, and to refuse what won't fit."""

    memory_bytes: int
    seconds: float

    def table(self) -> list[tuple[str, str]]:
        """Return the figures as printable rows."""
        minutes = f"{self.seconds / 60:.0f} min" if self.seconds >= 90 else f"{max(1, round(self.seconds))} s"
        return [("memory", human_bytes(self.memory_bytes)), ("time", minutes)]


class Method(Settings):
    """A way to turn people into a release: a frozen object with settings and one verb, `anonymize`.

    A method is one class that declares everything the rest of the program knows about it. The command line, the
    configuration file, `compare`, error messages and the table of methods are derived from the class. Its fields are
    the settings (see `shoal.settings.setting`). Its class variables are:

    `name`, `about`, `citation`
        The name of the method, one sentence on what it does, and where it was published.
    `takes`, `layout`
        Whether it works on samples of the grid (`Trajectories`) or on fixes (`Traces`), and what its records are.
    `variants`, `value_setting`
        The words that may follow the name in `compare`, with the settings they stand for; or the one setting whose
        value follows the name.
    `examples`
        The settings of the example in the help. Settings without a default must be among them.
    `resumable`, `noisy`
        Whether it keeps finished parts in `run.store`, and whether it draws noise, which a seed makes repeatable.
    `less_loss`, `less_memory`
        The advice in messages if too much would be left out, or if the work would not fit into memory.

    A new method needs such a class under `@register` and one line in `shoal.methods`; CONTRIBUTING.md lists the rest.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    citation: ClassVar[str]
    takes: ClassVar[Literal["samples", "fixes"]] = "samples"
    layout: ClassVar[type[Layout]] = Boxes
    variants: ClassVar[dict[str, dict[str, Any]]] = {}
    value_setting: ClassVar[str | None] = None
    examples: ClassVar[dict[str, Any]] = {}
    resumable: ClassVar[bool] = False
    noisy: ClassVar[bool] = False
    less_loss: ClassVar[str] = "use other settings or more people"
    less_memory: ClassVar[str] = "use a shorter `period` or a smaller `bbox`"

    @classmethod
    def example(cls) -> Method:
        """Return the method with the settings of its example."""
        return cls(**cls.examples)

    @classmethod
    def read(cls, source: Input, *, options: ReadOptions | None = None, run: Run = LOCAL) -> Trajectories | Traces:
        """Return the people of some files in the form that the method takes: by `shoal.read` or `shoal.read_traces`."""
        from shoal.reading import read, read_traces

        reader = read_traces if cls.takes == "fixes" else read
        return reader(source, options=options, run=run)

    @property
    @abstractmethod
    def claim(self) -> Claim:
        """What its releases promise, as far as it is known before people are read."""

    @property
    def truth(self) -> Literal["member", "group"]:
        """Whether every box holds a sample of each member of its record, or of the group as a whole."""
        return "member"

    @property
    def among(self) -> int | None:
        """The least number of people everyone is hidden among; None for methods that do not hide people in crowds."""
        return None

    @property
    def parameters(self) -> dict[str, Any]:
        """The public settings under the names with which they are written into the release."""
        public = {}
        for name, about in self.settings().items():
            value = self.effective(name)
            if about.public and value is not None and not (about.quiet and value == self._default(name)):
                public[about.public] = value
        return public

    def effective(self, name: str) -> Any:
        """Return the value of a setting in effect, which may be derived and differ from the given one."""
        return getattr(self, name)

    def anonymize(self, people: Trajectories | Traces, *, seed: int | None = None, run: Run = LOCAL) -> Release:
        """Return the release of some people; see the class for what it guarantees.

        Records depend on people and settings only, never on `run`. Noise, if there is any, is the operating system's
        unless a `seed` makes it repeatable. Raises SettingsError or TooFewUsers for people it can't work on.
        """
        self.require(people)
        return self.make(people, run=run, **({"seed": seed} if self.noisy else {}))

    @abstractmethod
    def make(self, people: Any, *, run: Run) -> Release:
        """Return the release of people who passed `require`; `noisy` methods also take a `seed`."""

    @abstractmethod
    def estimate(self, people: Any, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory of `anonymize`, to about a factor of two."""

    def require(self, people: Trajectories | Traces) -> None:
        """Check that the method can work on these people: the right kind of data, and at least k. Raises otherwise."""
        if not isinstance(people, Traces if self.takes == "fixes" else Trajectories):
            reader = "shoal.read_traces" if self.takes == "fixes" else "shoal.read"
            call = f"{type(self).__name__}(…).anonymize({reader}(data))"
            raise SettingsError(f"{self.name} works on {self.takes} that were read: call {call}")
        if self.among is not None and len(people) < self.among:
            raise TooFewUsers(
                f"{len(people)} users are left after cleaning, but k = {self.among} needs at least {self.among}; "
                "lower k or loosen `min_samples`, `bbox` and `period`"
            )

    @classmethod
    def _default(cls, name: str) -> Any:
        return cls.model_fields[name].default


class CrowdMethod(Method):
    """A method of boxes that hides everyone among at least `k`."""

    examples: ClassVar[dict[str, Any]] = {"k": 5}
    less_loss: ClassVar[str] = "raise `max_span` and `max_duration`, or leave them out"

    k: int = setting(help="Hide everyone among at least k people, e.g. 5.", public="k", ge=2, le=1000)

    @property
    def among(self) -> int:
        """The least number of people everyone is hidden among."""
        return self.k


class PointMethod(Method):
    """A method that turns traces of real places and times into records of points."""

    takes: ClassVar[Literal["samples", "fixes"]] = "fixes"
    layout: ClassVar[type[Layout]] = Points
