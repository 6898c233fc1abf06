"""Memory: attacks, metrics and measurements declare what they take, refuse what does not fit, and keep within it."""

import gc
import tracemalloc
from dataclasses import replace

import pytest

import shoal
from shoal.attacks import ATTACKS, open_target, play
from shoal.errors import TooLarge
from shoal.measure.sweep import coarser
from shoal.memory import left_bytes
from shoal.run import Run
from shoal.utility.evaluate import evaluate_pairs
from shoal.utility.metrics import METRICS, Drawn

MUCH = Run(threads=2, memory="8GB")
LITTLE = Run(threads=2, memory=2 << 20)


@pytest.fixture(scope="module", params=[400, pytest.param(8000, marks=pytest.mark.slow)])
def people(request):
    return shoal.from_arrow(shoal.synthesize(users=request.param, seed=1))


@pytest.fixture(scope="module")
def target(people):
    return open_target(people, shoal.Shoal(k=2, effort="quick").anonymize(people))


def taken(function):
    """The most memory that a function takes besides what there is already, in bytes."""
    function()  # what is made once is not the function's
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        function()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def on_boxes():
    return [name for name, attack in ATTACKS.items() if not attack.on_traces]


@pytest.mark.parametrize("release", ["of groups", "raw"])
@pytest.mark.parametrize("name", on_boxes())
def test_attacks_keep_within_what_they_declare(target, name, release, monkeypatch):
    """A release of few large boxes, and one with a box for each sample; the same target, but with nothing kept."""
    needed = []
    monkeypatch.setattr(Run, "require_room", lambda self, most, *_, **__: needed.append(most))

    def once():
        fresh = target.control() if release == "raw" else replace(target)
        play(fresh, name, run=MUCH, **({"other": fresh} if ATTACKS[name].needs_other else {}))

    assert taken(once) < needed[0]


@pytest.mark.parametrize("name", on_boxes())
def test_attacks_that_do_not_fit_are_refused(target, name):
    with pytest.raises(TooLarge, match=f"the attack {name} would take about .* memory"):
        play(target, name, run=LITTLE, **({"other": target} if ATTACKS[name].needs_other else {}))


@pytest.fixture(scope="module")
def pairs():
    from shoal.seen.pairs import open_pairs

    traces = shoal.read_traces(shoal.synthesize(users=60, kind="gps", scene="town", days=2, seed=1), split_gap="4h")
    return open_pairs(traces, shoal.Promesse(step=50).anonymize(traces))


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_metrics_keep_within_what_they_declare(pairs, metric):
    needed = metric.fix_bytes * pairs.original.fixes + metric.point_bytes * pairs.published.fixes
    blocks = 4 << 20
    assert taken(lambda: metric.measure(pairs, Drawn(100, 1), MUCH)) < needed + blocks


def test_metrics_that_do_not_fit_are_refused_before_any_is_measured(pairs, monkeypatch):
    measured = []
    for metric in METRICS.values():
        monkeypatch.setattr(type(metric), "measure", lambda *_: measured.append(1))
    with pytest.raises(TooLarge, match="spatial error would take"):
        evaluate_pairs(pairs, run=LITTLE)
    assert not measured


def test_k_gaps_take_less_where_memory_is_short_and_are_the_same(people):
    few = people.first(400)
    much, short = (shoal.k_gap(few, 3, run=Run(memory=memory)) for memory in ("8GB", few.nbytes * 2 + (4 << 20)))
    assert (much.gap == short.gap).all()
    assert (much.near == short.near).all()
    least = Run(memory=few.nbytes * 2 + (4 << 20))
    assert taken(lambda: shoal.k_gap(few, 3, sample=5, run=least)) < least.room(few.nbytes)
    with pytest.raises(TooLarge, match="the k-gap would take"):
        shoal.k_gap(few, 3, run=Run(memory=few.nbytes))


def test_coarser_grids_take_24_bytes_a_sample(people):
    """12 for the result, and while it is made 4 for the users and 8 for the sort."""
    assert taken(lambda: coarser(people, 1000, 3600)) < 25 * people.samples + 200 * len(people) + (20 << 20)


def test_what_is_left_of_a_limit():
    assert left_bytes(1 << 30, 1 << 20) == (1 << 30) - (1 << 28) - (1 << 20)
    assert left_bytes(1 << 28) == 1 << 27  # of small limits, half is for the work
    assert left_bytes(1 << 28, 1 << 28) == 0
    assert left_bytes(None, 1 << 20) > 1 << 20
