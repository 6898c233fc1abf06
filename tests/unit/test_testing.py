"""Every method of the registry conforms; a toy method needs one class and one registration; broken ones are told."""

import json

import numpy as np
import pytest

import shoal
from shoal.comparison import contests
from shoal.methods import METHODS, Estimate
from shoal.testing import CHECKS, Nonconforming, check_method
from tests.forked import forked
from tests.people import random_people, same

TOY = '''
from typing import Any, ClassVar
import numpy as np
from shoal.claim import Claim
from shoal.layouts import Boxes
from shoal.methods import Estimate, Method, register
from shoal.release import Members, Release
from shoal.run import LOCAL
from shoal.settings import setting

@register
class Town(Method):
    """Publish everybody as one box of whole days."""
    name: ClassVar[str] = "town"
    about: ClassVar[str] = "Publish everybody as one box."
    citation: ClassVar[str] = "a test"
    variants: ClassVar[dict[str, dict[str, Any]]] = {"wide": {"margin": 3}}
    margin: int = setting(0, help="Cells around everybody.", public="margin", ge=0)

    @property
    def claim(self):
        return Claim("none")

    def make(self, people, *, run):
        with run.stage("boxes", len(people)) as advance:
            edges = [people.t.min(), people.t.max(), people.x.min() - self.margin, people.x.max() + self.margin,
                     people.y.min() - self.margin, people.y.max() + self.margin]
            advance(len(people))
        everyone = np.arange(len(people))
        boxes = np.tile(np.array(edges, np.int32), (len(people), 1))
        return Release(offsets=np.arange(len(people) + 1), layout=Boxes(boxes), frame=people.frame,
                       method=self.name, parameters=self.parameters, claim=self.claim,
                       samples=people.samples, members=Members(everyone, np.arange(len(people) + 1), everyone, people))

    def estimate(self, people, *, run=LOCAL):
        return Estimate(24 * len(people), 0.001)
'''


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_the_registry_conform(name):
    settings = {"kte-hide": {"k": 2, "tau": "1d", "epsilon": "1d"}, "promesse": {"step": "50m"}}
    kind = METHODS[name]
    small = {"k": 3} if "k" in kind.model_fields else kind.examples
    assert check_method(kind(**settings.get(name, small)), users=40) == list(CHECKS)


@pytest.mark.parametrize("name", ["shoal", "k-scale", "k-concealment", "glove", "glove:two-stage"])
def test_threads_do_not_matter_among_more_people(name):
    people, (one,) = random_people(150, seed=4), contests([name], [3])
    alone, *together = (one.method.anonymize(people, run=shoal.Run(threads=n)) for n in (1, 2, 3))
    for release in together:
        same(alone, release)


def test_a_toy_method_works_everywhere(events, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text('[anonymize]\nmethod = "town"\nmargin = 2\n')
    release = tmp_path / "r.parquet"
    commands = [
        ["anonymize", events, release, "--config", tmp_path / "run.toml", "--json"],
        ["anonymize", "--help"],
        ["methods"],
        ["methods", "town"],
        ["compare", events, "--methods", "town,town:wide", "--json"],
        ["anonymize", events, tmp_path / "x.parquet", "--method", "town", "--margin", "-1"],
    ]
    script = f"{TOY}\nimport contextlib, sys\nfrom shoal.cli import main\nfrom shoal.testing import check_method\n"
    # The verifier's own table of public settings is the one other place that must know the method.
    script += "from shoal.verifier.header import _SETTINGS\ntry:\n    check_method(Town(margin=1), users=20)\n"
    script += "except AssertionError as error:\n    print(error)\nprint('-----')\n"
    script += "_SETTINGS['town'] = {'margin': None}\ncheck_method(Town(margin=1), users=20)\n"
    for command in commands:
        script += (
            f"with contextlib.suppress(SystemExit):\n    main({[str(one) for one in command]!r})\nprint('-----')\n"
        )
    code, out, err = forked(script)
    assert code == 0, err
    refused, published, helped, listed, described, compared, _, _ = out.split("-----\n")
    assert refused.startswith("town, claim: the release did not verify (leaks)")
    assert json.loads(published)["published"], err
    assert shoal.read_release(release).parameters == {"margin": 2}
    assert "Settings of town" in helped
    assert "--margin" in helped
    assert "town" in listed
    assert "Cells around everybody." in described
    assert [run["method"] for run in json.loads(compared)["runs"]] == ["town", "town:wide"]
    assert err == "shoal: --margin: must be at least 0 (Cells around everybody)\n"


def broken(**changes):
    """Return `uniform` with something wrong about it."""
    return type("Broken", (shoal.Uniform,), changes)(to_cell="1km")


def test_what_is_wrong_is_told():
    real = shoal.Uniform.make

    def swallows(self, people, *, run):
        return real(self, people, run=shoal.Run())

    def by_label(self, people, *, run):
        release = real(self, people, run=run)
        release.boxes[0] += np_of(people)
        return release

    def np_of(people):
        return 1 if str(people.labels[0]).startswith("p") else 0

    def wasteful(self, people, *, run):
        return [np.ones(10**6), real(self, people, run=run)][1]

    def estimate(self, people, *, run=None):
        return Estimate(1, 1.0)

    for wrong, check in (
        ({"about": ""}, "declarations"),
        ({"make": swallows}, "interrupt"),
        ({"make": by_label}, "labels"),
        ({"make": wasteful}, "memory: it takes"),
        ({"estimate": estimate}, "memory: with less memory than estimated, the rows of one user"),
    ):
        with pytest.raises(Nonconforming, match=check):
            check_method(broken(**wrong), users=12)


def test_the_verifiers_table_agrees_with_the_declarations():
    """The verifier does not look at methods: it knows by itself what they publish, and what boxes are true of."""
    from shoal.seen.header import truth_level
    from shoal.verifier.header import _PER_METRE, _SETTINGS

    for name, kind in METHODS.items():
        public = {about.public for about in kind.settings().values() if about.public}
        assert public - {"k"} == {*_SETTINGS[name], *([_PER_METRE[name]] if name in _PER_METRE else [])}

    for name, kind in METHODS.items():
        for settings in (kind.examples, *({**kind.examples, **more} for more in kind.variants.values())):
            method = kind(**settings)
            assert truth_level(name, method.parameters) == method.truth
