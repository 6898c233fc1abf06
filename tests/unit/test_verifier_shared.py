"""What the verifier shares with the code that makes releases is what it says."""

import re

from shoal import verifier
from tests.house.test_architecture import SOURCE, imports_at_run_time

SHARED = {
    *("reading.options", "reading.parts", "reading.times", "reading.days", "reading.spill"),
    *("claim", "frame", "layouts", "release", "traces", "trajectories"),
    *(
        "arrow",
        "errors",
        "folders",
        "jit",
        "lists",
        "memory",
        "names",
        "notebook",
        "parallel",
        "regular",
        "run",
        "switch",
        "units",
    ),
    *("stores.addresses", "stores.objects", "stores.postgres", "stores.released"),
}
MAKERS = {"methods", "search", "kernels", "merge", "measure", "publishing"}


def imported(room):
    found = set().union(*map(imports_at_run_time, (SOURCE / room).rglob("*.py")))
    return {name for name in found if name.partition(".")[0] not in ("seen", "verifier")}


def test_the_verifier_shares_what_it_says_and_no_more():
    assert imported("seen") | imported("verifier") == SHARED
    said = set(re.findall(r"`([a-z.]+)`", verifier.__doc__)) - {"seen", "reading"}
    assert said == SHARED | MAKERS
