"""What can be found has a code and a sentence, and is used; findings keep count of it."""

import ast
import re
import string
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.seen.codes import NOT_CHECKED, NOTES, PROBLEMS
from shoal.seen.findings import Finding, Findings
from shoal.verifier.leaks import _ODD

SOURCE = Path(shoal.__file__).parent
SENTENCES = {**PROBLEMS, **NOTES}
TABLES = [("problems", ("fail", "fail_if")), ("notes", ("note", "conclude")), ("not checked", ("skip",))]
KINDS = [
    "integrity", "signature", "leaks", "audit", "truth", "suppression", "identical", "original", "cover", "windows",
    "steps", "noise",
]  # fmt: skip


def fields(code):
    """Return {name of a fact: its format} of a sentence."""
    return {name: form for _, name, form, _ in string.Formatter().parse(SENTENCES[code]) if name}


def codes_in(argument):
    """Return the codes that an argument of a call may be."""
    if isinstance(argument, ast.JoinedStr):
        assert ast.unparse(argument) == "f'leaks/{kind}'"
        return [f"leaks/{kind}" for kind in _ODD]
    outcomes = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
    return [outcome.value for outcome in outcomes if isinstance(outcome, ast.Constant)]


def used():
    """Return every (method of Findings, code, names of the facts) with which the sources call it."""
    places = {"fail": 0, "fail_if": 1, "note": 0, "skip": 0, "conclude": 0}
    for module in [*(SOURCE / "seen").glob("*.py"), *(SOURCE / "verifier").glob("*.py")]:
        for call in ast.walk(ast.parse(module.read_text())):
            method = getattr(call.func, "attr", "") if isinstance(call, ast.Call) else ""
            if method in places and len(call.args) > places[method]:
                for code in codes_in(call.args[places[method]]):
                    yield method, code, {keyword.arg for keyword in call.keywords}


def test_every_code_is_used_and_every_code_used_exists():
    codes = {table: {code for method, code, _ in used() if method in names} for table, names in TABLES}
    assert codes == {"problems": set(PROBLEMS), "notes": set(NOTES), "not checked": set(NOT_CHECKED)}


def test_every_finding_has_the_facts_of_its_sentence():
    for method, code, facts in used():
        if method != "skip":
            added = {"fail_if": {"n"}, "conclude": {"rest"}}.get(method, set())
            assert facts | (added & fields(code).keys()) == fields(code).keys(), code


def test_sentences_are_whole():
    for code in SENTENCES:
        said = str(Finding(code, {name: 1234 if form else "This" for name, form in fields(code).items()}))
        assert re.fullmatch(r"[A-Z0-9][^{}]*\.", said), code
    for what in NOT_CHECKED.values():
        assert re.fullmatch(r"[a-z].*[a-z]", what)


def test_the_part_before_the_slash_is_the_kind_of_check():
    assert list(dict.fromkeys(Finding(code, {}).kind for code in PROBLEMS)) == KINDS
    assert all(code.count("/") == 1 and Finding(code, {}).is_problem for code in PROBLEMS)
    assert not any("/" in code or Finding(code, {}).is_problem for code in NOTES)


# Sentences with numbers in them


@pytest.mark.parametrize(
    ("code", "facts", "said"),
    [
        ("leaks/off", {"n": 1234}, "1,234 boxes have edges off the declared grid."),
        ("leaks/small-count", {"n": 2, "k": 3}, "2 rows have a count below 3."),
        ("leaks/header-differs", {"name": "tau_s"}, "The parameters hold another tau_s than the claim."),
        ("suppression/stated-too-many", {"limit": 0.2}, "More than 20% of the samples are stated to be suppressed."),
        ("suppression/too-many", {"share": 0.25678, "limit": 0.2}, "25.7% of the samples were suppressed; at most 20%"),
        (
            "windows/leakage",
            {"n": 1234, "total": 5678, "epsilon_s": 3600},
            "1,234 of 5,678 windows reveal more than 3,600 s",
        ),
        ("outside-claim", {"users": 1001, "rows": 0}, "1,001 users and 0 rows were left out"),
        (
            "group-truth",
            {"share": 0.0416},
            "Truth is of the weaker level 'group': of all pairs of a box and a member of its record, 4.2%",
        ),
    ],
)
def test_numbers_are_written_for_people(code, facts, said):
    assert str(Finding(code, facts)).startswith(said)


BOXES = {"what": "The claim", "users": 1234, "asked": "k = 2"}
HOLDS = "The claim holds for 1,234 users, checked with k = 2"
ONLY = "Nothing is claimed about 1,234 users; the file is well formed and holds nothing besides its points"


@pytest.mark.parametrize(
    ("code", "facts", "skipped", "failed", "said"),
    [
        ("holds", BOXES, [], [], [f"{HOLDS}."]),
        ("holds", BOXES, ["integrity", "file"], [], [f"{HOLDS}, except integrity; integrity and leaks."]),
        ("holds", BOXES, [], ["truth/empty"], ["Nothing is published."]),
        ("holds", BOXES, ["integrity"], ["truth/empty"], ["Nothing is published.", "Not checked: integrity."]),
        ("points-hold", {"users": 1234}, [], [], ["The claim holds for each point of 1,234 users."]),
        ("points-only", {"users": 1234}, [], [], [f"{ONLY}."]),
        ("points-only", {"users": 1234}, ["file"], [], [f"{ONLY}, except integrity and leaks."]),
    ],
    ids=range(7),
)
def test_the_result_is_said_in_a_sentence(code, facts, skipped, failed, said):
    findings = Findings()
    for what in failed:
        findings.fail(what)
    for what in skipped:
        findings.skip(what)
    findings.conclude(code, **facts)
    assert findings.messages == said
    assert findings.skipped == [NOT_CHECKED[what] for what in skipped]
    assert findings.codes == failed


# Findings


def test_a_failure_is_a_check_that_ran():
    findings = Findings()
    findings.ran("leaks")
    findings.ran("leaks")
    findings.fail("truth/empty")
    findings.fail("leaks/order", what="time")
    assert findings.checked == ["leaks", "truth"]
    assert findings.found == [("truth/empty", {}), ("leaks/order", {"what": "time"})]
    assert findings.codes == ["truth/empty", "leaks/order"]
    assert findings.failures == {"truth", "leaks"}
    assert (findings.skipped, findings.figures) == ([], {})


@pytest.mark.parametrize("broken", [0, None, False, ""])
def test_what_is_not_broken_was_checked_all_the_same(broken):
    findings = Findings()
    findings.fail_if(broken, "audit/no-owner")
    assert (findings.checked, findings.found, findings.failures) == (["audit"], [], set())


def test_a_count_of_what_is_broken_is_a_fact_where_the_sentence_has_one():
    findings = Findings()
    findings.fail_if(3, "cover/too-few-records", k=5)
    findings.fail_if(np.bool_(1), "cover/too-few-users", k=2)
    findings.fail_if(3, "truth/samples-created")
    findings.fail_if(0, "leaks/wild")
    facts = [("cover/too-few-records", {"n": 3, "k": 5}), ("cover/too-few-users", {"n": 1, "k": 2})]
    assert findings.found == [*facts, ("truth/samples-created", {})]
    assert all(type(finding.facts.get("n", 0)) is int for finding in findings.found)
    assert findings.checked == ["cover", "truth", "leaks"]


def test_a_note_is_no_failure_and_no_check():
    findings = Findings()
    findings.note("order-not-judged", n=20)
    assert findings.found == [("order-not-judged", {"n": 20})]
    assert (findings.checked, findings.codes, findings.failures, findings.problems) == ([], [], set(), [])
    assert findings.messages == ["The order of the records was not judged: that needs 20 records."]


def test_everything_is_said_once():
    findings = Findings()
    for _ in range(2):
        findings.note("larger-k")
        findings.fail("leaks/off", n=2)
        findings.fail("leaks/off", n=3)
        findings.fail("cover/nobody")
        findings.fail("windows/nobody")
    assert findings.codes == ["leaks/off", "leaks/off", "cover/nobody", "windows/nobody"]
    assert [finding.facts for finding in findings.found] == [{}, {"n": 2}, {"n": 3}, {}, {}]
    boxes = [f"{n} boxes have edges off the declared grid." for n in (2, 3)]
    assert findings.problems == [*boxes, "No user has a published sample."]
    assert findings.messages == [NOTES["larger-k"], *findings.problems]
