"""Results say what they are: one line as text, a small table in a notebook, never anything about a person."""

import pytest

import shoal


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    events = folder / "events.parquet"
    shoal.synthesize(events, users=30, scene="town", days=1, seed=1)
    people = shoal.read(events)
    done = shoal.publish(events, folder / "release.parquet", shoal.Shoal(k=3), audit=folder / "audit.parquet")
    return {
        "people": people,
        "traces": shoal.read_traces(events),
        "release": done.release,
        "verdict": done.verdict,
        "published": done,
        "gaps": shoal.k_gap(people, [2, 3]),
        "outcome": shoal.attack(people, done.release, "points", victims=5),
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("people", "Trajectories(30 users,"),
        ("traces", "Traces(30 users,"),
        ("release", "Release(30 records,"),
        ("verdict", "Verdict(verdict HOLDS, claim k-anonymity(3), found right integrity"),
        ("published", "Published(claim k-anonymity(3), verified yes,"),
        ("gaps", "Gaps(users 30, median gap, k = 2 "),
        ("outcome", "Outcome(attack points, promise kept yes, victims 5,"),
    ],
)
def test_results_are_shown_in_a_line_and_in_a_table(results, name, text):
    assert repr(results[name]).startswith(text)
    assert len(repr(results[name])) < 500
    html = results[name]._repr_html_()
    assert html.startswith(f"<table><caption>{type(results[name]).__name__}</caption><tr>")
    assert html.count("<tr>") == html.count("</tr>") == len(results[name].summary())


def test_what_is_shown_is_escaped(results):
    class Odd(type(results["verdict"])):
        def summary(self):
            return [("<b>", "<script>")]

    verdict = Odd(**vars(results["verdict"]))
    assert "<script>" not in verdict._repr_html_()
