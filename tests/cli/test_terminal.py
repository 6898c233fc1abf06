"""On a terminal there is progress; afterwards it is gone and the figures stand."""

import os
import pty
import subprocess
import sys

from shoal.cli.console import show_table


def on_a_terminal(*arguments):
    """Run the command with a terminal for standard error; give its exit code, standard output and what was drawn."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "shoal.cli", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    drawn = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        drawn += part
    out, _ = process.communicate(timeout=300)
    os.close(ours)
    return process.returncode, out.decode(), drawn.decode()


def test_progress_and_figures(events, tmp_path):
    code, out, drawn = on_a_terminal("anonymize", events, tmp_path / "r.parquet", "--k", "2")
    assert code == 0
    assert "partners" in drawn
    assert "left" in drawn
    assert "\x1b[2K" in drawn[-80:]  # the last lines are wiped
    assert "Verified: k-anonymity(2)" in out
    assert "\x1b" not in out


def test_quiet(events, tmp_path):
    code, _, drawn = on_a_terminal("anonymize", events, tmp_path / "r.parquet", "--k", 2, "--quiet")
    assert code == 0
    assert drawn == ""


def test_a_long_value_does_not_move_the_others(capsys):
    show_table("People", [("users", 2000), ("crs", "+proj=laea " * 9)])
    assert "  users  2,000\n" in capsys.readouterr().out
