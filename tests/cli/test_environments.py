"""Every command in every surrounding: the exit code is right, no traceback is printed, and nothing is left behind."""

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

import shoal
from shoal import memory
from shoal.cli.app import _COMMANDS
from shoal.cli.limits import refused_by_system, warn_before_cpu_limit
from shoal.parallel import cores
from shoal.run import _say_lowered
from tests.forked import COMMAND, forked

# Each command, with the files that it leaves. {out} is an empty folder; the others are files.
COMMANDS = {
    "help": ("--help", []),
    "help of a command": ("anonymize --help", []),
    "methods": ("methods shoal", []),
    "methods as JSON": ("methods --json", []),
    "synth": ("synth {out}/s.parquet --users 20 --days 1 --seed 1", ["s.parquet"]),
    "inspect": ("inspect {events}", []),
    "inspect as JSON": ("inspect {events} --json", []),
    "measure": ("measure {events} --unicity --points 1", []),
    "anonymize": (
        "anonymize {events} {out}/r.parquet --method uniform --to-cell 50km --to-slot 1440min",
        ["r.parquet", "r.parquet.manifest.json"],
    ),
    "anonymize as JSON": (
        "anonymize {events} {out}/r.parquet --method uniform --to-cell 50km --to-slot 1440min --json",
        ["r.parquet", "r.parquet.manifest.json"],
    ),
    "verify": ("verify {events} {release}", []),
    "verify as JSON": ("verify {events} {release} --json", []),
    "verify what does not hold": ("verify {events} {release} --k 3", []),
    "attack": ("attack {events} {release} --attack points --points 1", []),
    "evaluate": ("evaluate {events} {release}", []),
    "compare": ("compare {events} --methods uniform", []),
    "demo": (
        "demo --folder {out} --users 60 --k 2",
        [
            "audit.parquet",
            "events.parquet",
            "release.parquet",
            "release.parquet.manifest.json",
            "release.parquet.run.json",
        ],
    ),
    "prepare": ("prepare --work-dir {out}", []),
    "sign": ("sign --new-key {out}/key.pem", ["key.pem", "key.pem.pub"]),
    "a mistake": ("inspect {out}/none.parquet", []),
    "a mistake as JSON": ("inspect {out}/none.parquet --json", []),
    "a wrong flag": ("verify --flag", []),
}
CODES = {"verify what does not hold": 1, "a mistake": 2, "a mistake as JSON": 2, "a wrong flag": 2}
FILES_ARE_THE_RESULT = {"anonymize", "demo", "prepare", "sign", "synth"}

# What happens in a process before it runs the command. `stream(n)` is how Python sets up a stream at its start.
BEFORE = """
import io, os, sys
def stream(number, encoding="utf-8"):
    try:
        os.fstat(number)
    except OSError:
        return None
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding, line_buffering=True)
"""
AFTER = """
sys.stdout, sys.stderr = stream(1, *encoding), stream(2, *encoding)
from shoal.cli import main
main()
"""


class Around(NamedTuple):
    """A surrounding: what makes it, and the exit code of a command whose code would be another one elsewhere."""

    code: str
    expected: object = None


def lost(name):
    return 0 if name in FILES_ARE_THE_RESULT else 2


AROUND = {
    "usual": Around(""),
    "closed stdout": Around("os.close(1)"),
    "closed stderr": Around("os.close(2)"),
    "all closed": Around("os.closerange(0, 3)"),
    "full stdout": Around("os.dup2(os.open('/dev/full', os.O_WRONLY), 1)", lost),
    "full stderr": Around("os.dup2(os.open('/dev/full', os.O_WRONLY), 2)"),
    "both full": Around("for n in (1, 2): os.dup2(os.open('/dev/full', os.O_WRONLY), n)", lost),
    "reader gone": Around("r, w = os.pipe(); os.close(r); os.dup2(w, 1); os.dup2(w, 2)"),
    "read-only stdout": Around("os.dup2(os.open('/dev/null', os.O_RDONLY), 1)", lost),
    "ASCII": Around("encoding = ['ascii']"),
    "Latin-1": Around("encoding = ['latin-1']"),
    "no home": Around("for n in ('HOME', 'XDG_CACHE_HOME'): os.environ.pop(n, None)"),
    "home is nothing": Around("os.environ['HOME'] = '/proc/none'"),
    "umask 777": Around("os.umask(0o777)"),
    "umask 000": Around("os.umask(0)"),
    "tiny terminal": Around("os.environ['COLUMNS'] = os.environ['LINES'] = '1'"),
    "no terminal size": Around("os.environ['COLUMNS'] = '0'; os.environ.update(TERM='dumb', NO_COLOR='1')"),
    "no time zone": Around("os.environ['TZ'] = 'No/Where'"),
}
# What `make test` tries: these in each surrounding, all in one surrounding, and all whose result is what they print.
TRIED = {"anonymize", "a mistake", "help of a command"}
PRINTED = {"inspect as JSON", "anonymize as JSON", "methods", "a wrong flag"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Events, and a release of them that claims nothing."""
    folder = tmp_path_factory.mktemp("files")
    events, release = folder / "events.parquet", folder / "release.parquet"
    shoal.synthesize(events, users=40, days=1, scene="town", seed=3)
    shoal.publish(events, release, shoal.Uniform(to_cell="50km", to_slot="1440min"))
    return {"events": events, "release": release}


def test_no_command_is_forgotten():
    assert {command.split()[0] for command, _ in COMMANDS.values()} == {*_COMMANDS, "--help"}


def cases():
    for around in AROUND:
        for name in COMMANDS:
            quick = name in TRIED or around == "all closed" or (around == "both full" and name in PRINTED)
            yield pytest.param(around, name, marks=() if quick else pytest.mark.slow, id=f"{around}-{name}")


@pytest.mark.parametrize(("around", "name"), list(cases()))
def test_a_command(files, tmp_path, monkeypatch, around, name):
    monkeypatch.chdir(tmp_path)
    command, left = COMMANDS[name]
    before = sorted(path.name for path in files["events"].parent.iterdir())
    code, out, err = forked(
        f"{BEFORE}\nencoding = []\n{AROUND[around].code}\n{AFTER}", *command.format(out=tmp_path, **files).split()
    )
    expected = CODES.get(name, 0)
    if AROUND[around].expected is not None and not expected:
        expected = AROUND[around].expected(name)
    assert (code, out + err if code != expected else "") == (expected, "")
    assert "Traceback" not in out + err
    assert "Error in" not in out + err
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert sorted(path.name for path in files["events"].parent.iterdir()) == before
    published = [path for path in tmp_path.iterdir() if path.name.startswith(("r.", "release.", "audit.", "key."))]
    assert not [path.name for path in published if path.stat().st_mode & 0o022]


ANONYMIZE = "anonymize {events} {out}/r.parquet --method uniform --to-cell 50km --to-slot 1440min"
LIMITED = f"import os, resource\nresource.setrlimit(resource.RLIMIT_{{0}}, ({{1}}, {{1}}))\n{{2}}{COMMAND}"
AS_ANOTHER = "os.setgroups([])\nos.setresuid(12345, 12345, 12345)\n"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.mark.parametrize(
    ("limit", "value", "user", "said"),
    [
        ("AS", 800_000_000, "", "ulimit -v"),
        ("AS", 2_000_000_000, "", "ulimit -v"),
        ("DATA", 800_000_000, "", "ulimit -d"),
        ("NOFILE", 32, "", "ulimit -n"),
        pytest.param("NPROC", 2, AS_ANOTHER, "ulimit -u", marks=as_root),
        ("FSIZE", 100, "", "nothing was published"),
    ],
)
def test_limits_of_the_process(files, tmp_path, limit, value, user, said):
    command = [*ANONYMIZE.format(out=tmp_path, **files).split(), "--quiet"]  # no lines of progress
    code, out, err = forked(LIMITED.format(limit, value, user), *command)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_to_load_the_libraries(files, tmp_path):
    """In a fresh process, where loading them would crash or hang; help needs none of them."""
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, (800_000_000,) * 2)\n{COMMAND}"
    command = [sys.executable, "-c", limited]
    tried = subprocess.run(
        [*command, "inspect", files["events"]], capture_output=True, text=True, check=False, timeout=60
    )
    assert (tried.returncode, tried.stdout, tried.stderr.count("\n")) == (2, "", 1)
    assert "ulimit -v" in tried.stderr
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=60)
    assert helped.returncode == 0


# The limit of time is reached while the release is verified; the system repeats the signal until the end.
OUT_OF_TIME = """
import signal
from shoal import pipeline
def verify(*_, **__):
    for _ in range(3):
        signal.raise_signal(signal.SIGXCPU)
pipeline.verify = verify
from shoal.cli import main
main()
"""


def test_no_more_time_of_the_processor(files, tmp_path):
    code, _, err = forked(OUT_OF_TIME, *ANONYMIZE.format(out=tmp_path, **files).split())
    assert code == 128 + signal.SIGXCPU
    assert "ulimit -t" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("given", "warned"), [((60, 60), 55), ((10, 10), 8), ((1, 1), 1), ((3, 9), 3), ((-1, -1), -1)])
def test_the_warning_comes_before_the_end_of_time(monkeypatch, given, warned):
    found = [given]
    monkeypatch.setattr(resource, "getrlimit", lambda _: found[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: found.append(limits))
    warn_before_cpu_limit()
    assert found[-1] == (warned, given[1])


def test_limits_count_as_memory_that_is_not_available(monkeypatch):
    before = memory.available_bytes()
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        most = {kind: (5 * 10**12, -1)}
        monkeypatch.setattr(memory.resource, "getrlimit", lambda one, most=most: most.get(one, (-1, -1)))
        assert memory.available_bytes() <= before * 1.5
        most[kind] = (100_000, -1)  # less than the process has
        assert memory.available_bytes() == 0


@pytest.mark.parametrize(
    ("error", "kind", "word"),
    [
        (MemoryError(), "TooLarge", "memory"),
        (RuntimeError("can't start new thread"), "TooLarge", "ulimit -u"),
        (OSError(errno.EMFILE, "Too many open files"), "TooLarge", "ulimit -n"),
        (OSError(errno.ENOSPC, "No space left on device"), "OutputError", "full"),
        (OSError(errno.EFBIG, "File too large"), "OutputError", "ulimit -f"),
        (OSError(errno.ENAMETOOLONG, "File name too long"), "OutputError", "too long"),
        (OSError(errno.EIO, "Input/output error"), "OutputError", "Input/output error"),
        (RuntimeError("something else"), None, None),
        (OSError("text only"), None, None),
    ],
)
def test_what_the_system_refuses_has_a_kind_and_a_way_out(error, kind, word):
    refused = refused_by_system(error)
    assert (refused or (None, None))[0] == kind
    assert refused is None or word in refused[1]


# A user without a name and a home: everything is loaded before, since such a user may not read this installation.
NOBODY = """
import os, sys
from shoal.cli import main
arguments, sys.argv[1:] = sys.argv[1:], sys.argv[1:]
try:
    main([*arguments, "--overwrite", "--quiet"])
except SystemExit:
    pass
for path in os.listdir(out := os.path.dirname(arguments[2])):
    os.unlink(os.path.join(out, path))
os.setgroups([])
os.setresuid(12345, 12345, 12345)
for name in ("HOME", "USER", "LOGNAME", "XDG_CACHE_HOME"):
    os.environ.pop(name, None)
main()
"""


@as_root
def test_a_user_without_a_name_and_a_home(files):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        events, out = Path(folder, "events.parquet"), Path(folder, "out")
        shutil.copy(files["events"], events)
        out.mkdir()
        os.chown(out, 12345, 12345)
        code, _, err = forked(NOBODY, *ANONYMIZE.format(events=events, out=out).split())
        assert code == 0, err
        assert {path.stat().st_uid for path in out.iterdir()} == {12345}
        assert sorted(path.name for path in out.iterdir()) == ["r.parquet", "r.parquet.manifest.json"]


def test_the_current_folder_is_gone(files, tmp_path):
    gone = f"import os; os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n{COMMAND}"
    os.chdir(tmp_path)
    code, _, err = forked(gone, *ANONYMIZE.format(out=tmp_path, **files).split())
    assert (code, err) == (2, "shoal: the current folder is not there any more; change to another one\n")
    assert forked(gone, "--help")[0] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [b"a" * 250, b"a" * 300, b"\xff\xfe", b"a" * 236 + "é".encode()])
def test_names_that_no_file_can_have_or_no_manifest_can_hold(files, tmp_path, run, name):
    said = run("anonymize", files["events"], tmp_path / os.fsdecode(name + b".parquet"), "--k", 2, check=2).stderr
    assert said.startswith("shoal: ")
    assert "name" in said
    assert "Error in" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_and_an_input_whose_name_is_no_text(files, tmp_path, run):
    long = tmp_path / ("a" * 230 + ".parquet")
    assert not run(*ANONYMIZE.format(out=tmp_path, **files).split()[:2], long, *ANONYMIZE.split()[3:]).returncode
    shoal.read_release(long)
    events = tmp_path / os.fsdecode(b"\xff.parquet")
    shutil.copy(files["events"], events)
    run("inspect", events, check=0)


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        ("os.close(0); sys.stdin = None", "nothing is"),
        ("os.dup2(os.open('/dev/null', os.O_WRONLY), 0); sys.stdin = open(0, closefd=False)", "can't be copied"),
        ("sys.stdin = open('/dev/null')", "is empty"),
    ],
)
def test_standard_input_that_gives_nothing(tmp_path, monkeypatch, stdin, said):
    monkeypatch.chdir(tmp_path)
    code, out, err = forked(f"import os, sys\n{stdin}\n{COMMAND}", "inspect", "-", "--work-dir", tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("threads", [100_000, 3 * 10**9, 10**30])
def test_there_are_no_more_threads_than_cores(files, threads, caplog):
    _say_lowered.cache_clear()
    run = shoal.Run(threads=threads)
    assert run.threads == run.workers == cores()
    assert str(cores()) in caplog.text
    caplog.clear()
    assert run.within(10**9).threads == shoal.Run(threads=threads).threads == cores()
    assert caplog.text == ""  # once is enough
    code, _, err = forked(COMMAND, "inspect", files["events"], "--threads", threads, "--json")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("shoal: note: ")


@pytest.mark.parametrize("threads", [0, -1, -(10**30), "many", 1.5])
def test_a_number_of_threads_that_makes_no_sense(threads):
    with pytest.raises(shoal.SettingsError, match="threads"):
        shoal.Run(threads=threads)
