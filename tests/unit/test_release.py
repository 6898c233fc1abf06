"""Claims: typed, validated, read back as written, and never stronger than what was shown."""

import itertools

import pytest

from shoal.claim import CLAIMS, Claim
from shoal.errors import SettingsError
from shoal.seen.findings import Findings
from shoal.seen.header import read_header
from shoal.verifier.header import check_header
from shoal.verifier.windows import two_digits_up
from tests.releases import CRS

EXAMPLES = [
    {"name": "k-anonymity", "k": 5},
    {"name": "k-concealment", "k": 5},
    {"name": "cover", "k": 5},
    {"name": "kte-anonymity", "k": 5, "tau_s": 3600, "epsilon_s": 1800},
    {"name": "kte-cover", "k": 5, "tau_s": 3600},
    {"name": "kte-cover", "k": 5, "tau_s": 3600, "epsilon_s": 1800},
    {"name": "kte-cover", "k": 5, "tau_s": 3600, "epsilon_s": 1800, "leakage_share": 0.012},
    {"name": "geo-indistinguishability", "epsilon_per_m": 0.01},
    {"name": "geo-indistinguishability", "epsilon_per_m": 0.01, "total_per_m": 4.2},
    {"name": "none"},
    {"name": "none", "why": "research"},
]


def header(claim):
    return {"format": 1, "method": "k-scale", "parameters": {}, "claim": claim, "cell_m": 100, "slot_s": 60, "crs": CRS}


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda values: "-".join(map(str, values.values())))
def test_claims_are_read_back_as_written(values):
    claim = Claim.from_dict(values)
    assert claim.to_dict() == values
    assert Claim(**values) == claim == Claim.from_dict({**values, "note": "ignored"})
    assert str(claim).startswith(values["name"])
    assert "{" not in claim.promise + claim.still_possible
    assert claim.promise[-1] == claim.still_possible[-1] == "."
    findings = Findings()
    check_header(findings, header(values))
    assert not findings.failures
    understood = read_header(header(values))
    assert (understood.claim, understood.k, understood.tau_s) == (claim, claim.k, claim.tau_s)


def test_every_claim_has_an_example():
    assert list(dict.fromkeys(values["name"] for values in EXAMPLES)) == list(CLAIMS)


@pytest.mark.parametrize(
    "values",
    [
        {"name": "perfect", "k": 5},
        {"name": "cover"},
        {"name": "cover", "k": 0},
        {"name": "cover", "k": True},
        {"name": "cover", "k": 2.0},
        {"name": "cover", "k": "5"},
        {"name": "cover", "k": 2**31},
        {"name": "kte-anonymity", "k": 5, "tau_s": 3600},
        {"name": "kte-anonymity", "k": 5, "tau_s": 3600.5, "epsilon_s": 60},
        {"name": "kte-cover", "k": 5},
        {"name": "kte-cover", "k": 5, "tau_s": 3600, "leakage_share": 0.1},
        {"name": "kte-cover", "k": 5, "tau_s": 3600, "epsilon_s": 60, "leakage_share": 1.1},
        {"name": "kte-cover", "k": 5, "tau_s": 3600, "epsilon_s": 60, "leakage_share": float("nan")},
        {"name": "geo-indistinguishability"},
        {"name": "geo-indistinguishability", "epsilon_per_m": 0},
        {"name": "geo-indistinguishability", "epsilon_per_m": float("inf")},
        {"name": "none", "why": 3},
    ],
)
def test_what_is_no_claim_is_refused(values):
    with pytest.raises(SettingsError):
        Claim(**values)
    with pytest.raises(ValueError, match="claim"):
        Claim.from_dict(values)
    assert read_header(header(values)) is None


@pytest.mark.parametrize("more", [{"k": 3}, {"tau_s": 3600}, {"why": "research"}, {"leakage_share": 0.5}])
def test_a_claim_says_no_more_than_it_is(more):
    start = {"name": "none"} if "why" not in more else {"name": "cover", "k": 3}
    with pytest.raises(SettingsError, match="takes only"):
        Claim(**start, **more)
    findings = Findings()
    check_header(findings, header({**start, **more}))
    assert findings.failures == {"leaks"}


def test_a_share_of_many_digits_could_tell_something():
    findings = Findings()
    check_header(findings, header({**EXAMPLES[6], "leakage_share": 0.01234}))
    assert findings.failures == {"leaks"}


def test_a_claim_implies_itself_and_what_is_weaker():
    claims = [Claim(**values) for values in EXAMPLES]
    for claim in claims:
        assert claim.implies(claim)
        assert claim.implies(Claim("none"))
        assert (claim.name == "none") == Claim("none").implies(claim)
    for one, other in itertools.combinations(claims, 2):  # strongest first: nothing implies what comes before it
        if one.name != other.name:
            assert not other.implies(one)


@pytest.mark.parametrize(
    ("shown", "claimed", "implied"),
    [
        (Claim("k-anonymity", k=5), Claim("cover", k=5), True),
        (Claim("k-anonymity", k=5), Claim("k-anonymity", k=6), False),
        (Claim("k-concealment", k=5), Claim("k-anonymity", k=2), False),
        (Claim("cover", k=5), Claim("kte-cover", k=5, tau_s=10**6), True),
        (Claim("cover", k=5), Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=60), False),
        (Claim("cover", k=5), Claim("kte-cover", k=5, tau_s=60, epsilon_s=60, leakage_share=0.5), False),
        (Claim("kte-cover", k=5, tau_s=60), Claim("kte-cover", k=5, tau_s=120), False),
        (Claim("kte-cover", k=5, tau_s=120), Claim("kte-cover", k=4, tau_s=60), True),
        (Claim("kte-cover", k=5, tau_s=60), Claim("cover", k=5), False),
        (Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=60), Claim("kte-cover", k=5, tau_s=60), True),
        (
            Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=60),
            Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=120),
            True,
        ),
        (
            Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=60),
            Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=30),
            False,
        ),
        (
            Claim("kte-anonymity", k=5, tau_s=120, epsilon_s=60),
            Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=60),
            False,
        ),
        (
            Claim("kte-cover", k=5, tau_s=60, epsilon_s=60, leakage_share=0.02),
            Claim("kte-cover", k=5, tau_s=60, epsilon_s=60, leakage_share=0.01),
            False,
        ),
        (
            Claim("kte-cover", k=5, tau_s=60, epsilon_s=60, leakage_share=0.02),
            Claim("kte-anonymity", k=5, tau_s=60, epsilon_s=60),
            False,
        ),
        (
            Claim("geo-indistinguishability", epsilon_per_m=0.1),
            Claim("geo-indistinguishability", epsilon_per_m=0.1, total_per_m=9.0),
            False,
        ),
    ],
)
def test_words_are_never_stronger_than_what_was_shown(shown, claimed, implied):
    assert shown.implies(claimed) == implied


def test_times_are_told_in_units():
    claim = Claim("kte-anonymity", k=2, tau_s=3600, epsilon_s=90)
    assert str(claim) == "kte-anonymity(2, 60min, 90s)"
    assert "60min" in claim.promise
    assert "1.2 %" in Claim(**EXAMPLES[6]).still_possible


@pytest.mark.parametrize("share", [0.0, 1.0, 0.5, 0.999, 1 / 3, 0.0123456, 1e-6, 0.1, 0.07])
def test_shares_are_rounded_up(share):
    rounded = two_digits_up(share)
    assert share <= rounded <= share * 1.1
    assert rounded == float(f"{rounded:.1e}")
