"""kte-hide the whole way on real and generated data: verified by windows, with the audit and without, and attacked."""

import json

import pytest

import shoal
from shoal.methods.kte_hide.method import KteHide
from shoal.pipeline import publish
from shoal.verifier import with_measured_claim
from tests.acceptance.test_datasets import subset
from tests.publishing import written

TIMES = [("10min", "10min"), ("30min", "30min"), ("60min", "30min"), ("120min", "60min"), ("240min", "240min")]


@pytest.fixture(scope="module", params=["generated", "tdrive_cdr", "gowalla_nyc"])
def people(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("kte") / "original.parquet"
    if request.param == "generated":
        shoal.synthesize(path, users=400, scene="town", days=3, samples=65, seed=1)
    else:
        subset(request.getfixturevalue("data") / f"{request.param}.parquet", path, 400)
    return shoal.read(path)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(("tau", "epsilon"), TIMES)
def test_every_window_is_covered(people, k, tau, epsilon, tmp_path):
    """Whatever is suppressed: check data is sparse, and short epochs leave most people alone."""
    release = KteHide(k=k, tau=tau, epsilon=epsilon).anonymize(people)
    written(with_measured_claim(release), tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    verdict = shoal.verify(people, tmp_path / "r.parquet", audit=tmp_path / "a.parquet", max_suppressed=1.0)
    assert verdict.ok, verdict.problems
    assert verdict.figures["windows_short"] == verdict.figures["windows_ending_short"] == 0
    assert verdict.shown == verdict.claim


@pytest.mark.slow
def test_little_is_suppressed(data, tmp_path):
    """1,500 taxis at call-record rates, k = 2, τ = ε = 60 min: at most a tenth of the samples."""
    original, audit = tmp_path / "original.parquet", tmp_path / "audit.parquet"
    subset(data / "tdrive_cdr.parquet", original, 1500)
    method = shoal.KteHide(k=2, tau="60min", epsilon="60min")
    done = publish(original, tmp_path / "r.parquet", method, audit=audit, tz="Asia/Shanghai")
    assert done.verdict.ok
    assert done.verdict.figures["suppressed_samples"] <= 0.1 * done.verdict.figures["samples"]


def test_the_whole_command(events, tmp_path, run):
    """anonymize, verify and attack from the command line; the claim is what was measured."""
    release, audit = tmp_path / "r.parquet", tmp_path / "a.parquet"
    times = ["--tau", "4h", "--epsilon", "4h"]
    done = run("anonymize", events, release, "--method", "kte-hide", "--k", 2, *times, "--audit", audit, check=0)
    assert "Verified: kte-" in done.stdout
    claim = json.loads((tmp_path / "r.parquet.manifest.json").read_text())["shoal"]["claim"]
    assert claim["tau_s"] == claim["epsilon_s"] == 14400
    verdict = run("verify", events, release, "--k", 2, "--audit", audit, "--json", check=0).json
    assert verdict["shown"] == claim == verdict["claim"]
    assert verdict["figures"]["windows"] > 1000
    attack = run("attack", events, release, "--attack", "window", "--tau", "4h", "--audit", audit, "--json", check=0)
    assert json.loads(attack.stdout)["attacks"][0]["rows"][0]["candidates_min"] >= 2
    wrong = run(
        "anonymize", events, tmp_path / "x.parquet", "--k", 2, "--method", "kte-hide", "--tau", "45min", check=2
    )
    assert "multiple of epsilon" in wrong.stderr
    assert not (tmp_path / "x.parquet").exists()
