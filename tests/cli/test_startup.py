"""Help comes at once: it imports nothing heavy. The table of flags that allows this is what the declarations say."""

import json
import subprocess
import sys

import pytest

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


def test_the_table_of_flags_is_what_the_declarations_say():
    assert declared() == derived(), "run: make flags"


def test_verify_shows_the_share_that_the_verifier_allows():
    assert _MAX_SUPPRESSED == MAX_SUPPRESSED


def test_json_is_all_that_a_program_reads(process, events):
    done = process("inspect", events, "--json", check=0)
    assert json.loads(done.stdout)["ok"]
    assert done.stderr == ""
