"""Help comes at once: it imports nothing heavy. The table of flags that allows this is what the declarations say."""

import json
import subprocess
import sys

import duckdb
import pytest

import shoal
from shoal.cli.app import _COMMANDS
from shoal.cli.declared import declared, derived
from shoal.cli.verify import _MAX_SUPPRESSED
from shoal.verifier import MAX_SUPPRESSED

HEAVY = ("numba", "duckdb", "pyproj", "pyarrow", "pandas", "polars", "scipy", "numpy", "pydantic")
SCRIPT = f"""
import sys
from shoal.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(end.code, [name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize("command", ["", *(name for name in _COMMANDS if name != "attack")])
def test_help_imports_nothing_heavy(command):
    arguments = [*filter(None, [command]), "--help"]
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


NO_PANDAS = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            print("PANDAS", file=sys.__stderr__)
sys.meta_path.insert(0, Refuse())
from shoal.cli import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def made(events, tmp_path_factory):
    """A release and its audit file."""
    folder = tmp_path_factory.mktemp("made")
    release, audit = folder / "release.parquet", folder / "audit.parquet"
    shoal.publish(events, release, method=shoal.Shoal(k=2), audit=audit)
    return release, audit


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1 imports pandas itself for queries with parameters")
@pytest.mark.parametrize(
    "command",
    [
        "inspect EVENTS",
        "measure EVENTS --k 2 --unicity",
        "anonymize EVENTS OUT --k 2 --audit OUT.audit --overwrite",
        "verify EVENTS RELEASE --audit AUDIT",
        "attack EVENTS RELEASE --audit AUDIT --attack all --victims 5",
        "evaluate EVENTS RELEASE --audit AUDIT",
        "compare EVENTS --methods shoal,k-scale --k 2",
    ],
)
def test_commands_do_not_import_pandas(command, events, made, tmp_path):
    """It takes a second, in which Ctrl-C can get lost; Arrow imports it for its own conversions."""
    release, audit = made
    places = {"EVENTS": events, "RELEASE": release, "AUDIT": audit, "OUT": tmp_path / "o.parquet"}
    places["OUT.audit"] = tmp_path / "a.parquet"
    words = [str(places.get(word, word)) for word in command.split()]
    done = subprocess.run([sys.executable, "-c", NO_PANDAS, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "PANDAS" not in done.stderr


def test_the_table_of_flags_is_what_the_declarations_say():
    assert declared() == derived(), "run: make flags"


def test_verify_shows_the_share_that_the_verifier_allows():
    assert _MAX_SUPPRESSED == MAX_SUPPRESSED


def test_json_is_all_that_a_program_reads(process, events):
    done = process("inspect", events, "--json", check=0)
    assert json.loads(done.stdout)["ok"]
    assert done.stderr == ""
