"""`shoal anonymize` with single system calls that fail, or at which it is killed, and a judgement of what it leaves.

A helper interpreter runs with `tests/faults/inject.c` preloaded. It makes an old release and learns what the new one
looks like. Then each case is a fork of it: everything is imported and compiled. Both releases are made with a seed, so
that the files that a run leaves can be compared byte for byte, and both are verified once.
"""

import contextlib
import ctypes
import errno
import gc
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = ["open", "create", "write", "fsync", "rename", "link", "unlink", "close", "mkdir", "rmdir", "ftruncate"]
SPACE = ["create", "write", "fsync", "rename", "link", "mkdir", "ftruncate"]  # what a full disk refuses
ALL = (1 << len(KINDS)) - 1
# What happens at a call: an error of the system, or a signal; `on`: at all calls from there on.
ACTIONS = {
    **{name: {"error": name} for name in ("ENOSPC", "EDQUOT", "EIO", "EACCES", "EINTR")},
    **{name: {"signal": name} for name in ("SIGKILL", "SIGTERM", "SIGHUP")},
    "ENOSPC from then on": {"error": "ENOSPC", "on": True, "kinds": SPACE},
    "EIO from then on": {"error": "EIO", "on": True},
}
# Two settings of each method, for an old release and a new one.
SETTINGS = {
    **dict.fromkeys(("shoal", "k-scale", "k-concealment", "glove"), ({"k": 2}, {"k": 3})),
    "kte-hide": ({"k": 2}, {"k": 2, "tau": "60min", "epsilon": "60min"}),
    "promesse": ({"step": 500}, {"step": 400}),
    "geo-indistinguishability": ({"epsilon": 0.01}, {"epsilon": 0.02}),
    "uniform": ({"to_cell": 5_000}, {"to_cell": 10_000}),
}
MODES = ["fresh", "fresh, private files", "overwrite", "overwrite, private files"]


def compiled():
    """Compile the injector; return its path, or None if there is no compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    library = Path(tempfile.mkdtemp(prefix="shoal-inject-")) / "inject.so"
    source = Path(__file__).parent / "faults" / "inject.c"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


class Injector:
    """The helper interpreter: `calls(mode)` lists the calls of a run, `case(mode, action, at)` judges one."""

    def __init__(self, library, folder):
        env = {**os.environ, "LD_PRELOAD": str(library), "PYTHONHASHSEED": "0"}
        command = [sys.executable, "-m", "tests.injected", str(folder)]
        root = Path(__file__).parents[1]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env, cwd=root)

    def _ask(self, **question):
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the helper interpreter is gone")
        return json.loads(answer)

    def calls(self, mode):
        """The kinds of the calls of a run without faults, in order; the first has the number 1."""
        return [KINDS[kind] for kind in self._ask(mode=mode, at=0)["kinds"]]

    def case(self, mode, action, at, *, reader=False):
        """Run with a fault; return how it ended, what it left, and what is wrong about it (a list of sentences)."""
        return self._ask(mode=mode, action=action, at=at, reader=reader)

    def kills(self, method, moments, *, before=False, reader=False):
        """Kill runs with `resume` one after the other, then let one end; return what was left, and what is wrong.

        A moment is ("calls", share) or ("time", share): that part of the calls, or of the time, of a whole run. With
        `before`, an earlier release is there.
        """
        return self._ask(method=method, moments=moments, before=before, reader=reader)

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


# In the helper interpreter


class World:
    """A folder of cases, the events, and the two releases as they look when they are whole."""

    def __init__(self, folder, method="shoal"):
        import shoal
        from shoal.methods import METHODS

        self.library = ctypes.CDLL(None)
        self.folder, self.root = folder, folder / "case"
        self.method, self.again = method, False
        self.resume = METHODS[method].resumable
        kind = "gps" if METHODS[method].takes == "fixes" else "cdr"
        folder.mkdir(exist_ok=True)
        self.events = folder / "events.parquet"
        users = 40 if method == "kte-hide" else 12  # with fewer, it leaves out too much
        shoal.synthesize(self.events, users=users, kind=kind, scene="town", days=1, seed=1)
        self.whole = {}
        for private in (False, True) if method == "shoal" else (True,):
            self._learn(private=private)

    def _learn(self, *, private):
        """Make the old release and then the new one; keep a copy of the old one, and remember both."""
        import shoal

        kept = self.folder / f"old-{private}"
        for made, overwrite in (("old", False), ("new", True)):
            if made == "old":
                self._clear()
            self._publish(**self._settings(made, private=private, overwrite=overwrite))
            if made == "old":
                shutil.copytree(self.root, kept)
            audit = self.root / "private" / "a.parquet" if private else None
            if not shoal.verify(self.events, self.root / "out" / "r.parquet", audit=audit).ok:
                raise RuntimeError("a release does not hold")
            self.whole[private, made, True] = self._look()
        self._clear()
        self._publish(**self._settings("new", private=private, overwrite=False))
        self.whole[private, "new", False] = self._look()
        self.whole[private, "old", False] = {}

    def _clear(self):
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("out", "private"):
            (self.root / name).mkdir(parents=True)

    def _settings(self, made, *, private, overwrite):
        how = {"seed": 1 if made == "old" else 2, "overwrite": overwrite}
        if private:
            folder = self.root / "private"
            how |= {"audit": folder / "a.parquet", "ledger": folder / "book", "allow_overlap": True}
        return how | {"settings": SETTINGS[self.method][made == "new"]}

    def _publish(self, *, settings, **how):
        import shoal
        from shoal.methods import make_method

        shoal.publish(self.events, self.root / "out" / "r.parquet", make_method(self.method, settings), **how)

    def _in_child(self, settings, armed, *, seconds=None):
        """Publish in a fork, which a signal may kill; return the exit code and what it said.

        With `seconds`, it is killed when so many have passed.
        """
        with tempfile.TemporaryFile() as said:
            child = os.fork()
            if child == 0:
                code = 99
                try:
                    code, text = self._as_command(settings, armed)
                    os.write(said.fileno(), text.encode())
                finally:
                    os._exit(code)
            if seconds is not None:
                time.sleep(seconds)
                os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            return code, said.read().decode()

    def _as_command(self, settings, armed):
        """Publish as the command does; return the exit code and what it said."""
        from shoal.cli.app import _failed
        from shoal.interrupt import heed_signals

        code = 0
        with contextlib.redirect_stderr(io.StringIO()) as said:
            heed_signals()
            try:
                self.library.inject_arm(os.fsencode(self.root), *armed)
                self._publish(**settings)
            except BaseException as error:
                code = _failed([], error)
            finally:
                self.library.inject_arm(b"", 0, 0, 0, 0, 0)
        return code, said.getvalue()

    def _calls(self):
        """Return the kinds of the calls that were counted last."""
        made = (ctypes.c_ubyte * (1 << 16)).in_dll(self.library, "inject_kinds")
        return list(made[1 : 1 + self.library.inject_last()])

    def _look(self):
        """Return what is in the folders: files by name with what tells them; of what is hidden, the names alone."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.parent != self.root:
                found[name] = None if path.is_dir() or "/." in name else _told(path, again=self.again)
        return found

    def _place(self, *, overwrite, private):
        """Make the folders as they are before a case: empty, or with the old release."""
        self._clear()
        if overwrite:
            shutil.rmtree(self.root)
            shutil.copytree(self.folder / f"old-{private}", self.root)

    def kills(self, moments, *, before, reader):
        """Kill runs, then let one end; each continues from what the one before has finished."""
        self.again = True
        whole = {made: self.whole[True, made, before] for made in ("old", "new")}
        settings = self._settings("new", private=True, overwrite=True) | {"resume": self.resume}
        calls, seconds = self._length(settings)
        self._place(overwrite=before, private=True)
        states, wrong, killed, kept, lost, other = [], [], 0, 0, 0, 0
        for kind, share in moments:
            at = 1 + int(share * calls) if kind == "calls" else 0
            armed = (ALL, at, 0, int(signal.SIGKILL) if at else 0, 0)
            code, said = self._in_child(settings, armed, seconds=None if at else share * seconds)
            killed += code == -signal.SIGKILL
            if code not in (0, -signal.SIGKILL):
                wrong.append(f"the exit code is {code}: {said}")
            self._next(private=True, reader=reader)
            states.append(self._state(whole))
            kept += any(".part" in name for name in self._look())
            if states[-1] == "half" or any("/.shoal-" in name for name in self._look()):
                lost += 1
                wrong.append(f"left: {sorted(self._look())}")
        code, said = self._as_command(settings, (ALL, 0, 0, 0, 0))
        if code or self._look() != whole["new"]:
            other += 1
            wrong.append(f"the run that ended left something else: {code}, {said}, {sorted(self._look())}")
        self.again = False
        return {"killed": killed, "kept": kept, "states": states, "lost": lost, "other": other, "wrong": wrong}

    def _length(self, settings):
        """Return how many calls a whole run makes, and how long it takes."""
        if not hasattr(self, "_known"):
            begun = time.perf_counter()
            code, said = self._as_command(settings, (ALL, 0, 0, 0, 0))
            if code:
                raise RuntimeError(said)
            self._known = len(self._calls()), time.perf_counter() - begun
        return self._known

    def answer(self, mode, action=None, at=0, *, reader=False):
        """Carry out one case."""
        overwrite, private = mode.startswith("overwrite"), "private" in mode
        self._place(overwrite=overwrite, private=private)
        what = ACTIONS.get(action, {})
        error, number = what.get("error"), what.get("signal")
        mask = sum(1 << KINDS.index(kind) for kind in what["kinds"]) if "kinds" in what else ALL
        armed = (
            mask,
            at,
            getattr(errno, error) if error else 0,
            int(getattr(signal, number)) if number else 0,
            int(what.get("on", False)),
        )
        settings = self._settings("new", private=private, overwrite=overwrite)
        code, said = (self._in_child if number == "SIGKILL" else self._as_command)(settings, armed)
        if not at:
            return {"kinds": self._calls()}
        whole = {made: self.whole[private, made, overwrite] for made in ("old", "new")}
        raw = self._state(whole)
        self._next(private=private, reader=reader)
        left = self._look()
        after = self._state(whole)
        wrong = [*self._disagreements(code, said, number, raw, after)]
        if wrong:
            wrong.append(f"left: {sorted(left)}")
        return {"code": code, "said": said, "raw": raw, "after": after, "wrong": wrong}

    def _state(self, whole):
        """Return whether what is there is the old or the new, hidden folders aside; otherwise `half`."""
        found = {name: what for name, what in self._look().items() if "/." not in name}
        return next((made for made in ("old", "new") if found == whole[made]), "half")

    def _next(self, *, private, reader):
        """Do what the next command does first: a reader mends, a writer mends and sweeps."""
        from shoal.folders import claimed
        from shoal.seen.file import open_release_file

        release = self.root / "out" / "r.parquet"
        if reader:
            with contextlib.suppress(Exception):
                open_release_file(release)
        files = [release, *([self.root / "private" / "a.parquet"] if private else [])]
        with claimed(files):
            pass

    def _disagreements(self, code, said, number, raw, after):
        """Yield what is wrong after a case."""
        if after == "half":
            yield "neither the old nor the new release is there"
        if any("/." in name for name in self._look()):
            yield "something is left behind"
        if any(word in said for word in ("Traceback", "SHOAL_DEBUG", "Exception ignored")) or code in (1, 99):
            yield f"no typed error: exit code {code}, {said}"
        if code in (0, 2) or code > 128:
            yield from _untrue(code, said, raw, after)
        elif not (number and code == -getattr(signal, number)):
            yield f"the exit code is {code}"


def _told(path, *, again):
    """Return what tells a file: its hash; of those that hold times, what must agree with the other files.

    If a release was published `again`, it is in the ledger more than once.
    """
    content = path.read_bytes()
    with contextlib.suppress(ValueError, LookupError):
        if path.name == "book":
            known = json.loads(content.split(b"\n")[1])["releases"]
            entries = [[one["sha256"], one["published"] is not None] for one in known]
            return [one for n, one in enumerate(entries) if not again or one not in entries[:n]]
        if path.name.endswith(".run.json"):
            record = json.loads(content)
            return [record[name] for name in ("files", "seed", "counts", "shoal")]
    return hashlib.sha256(content).hexdigest()


def _untrue(code, said, raw, after):
    """Yield what a message or an exit code says that is not so."""
    if code == 0 and (raw, after) != ("new", "new"):
        yield f"it said that all went well, but there is {raw}, then {after}"
    if "nothing was published" in said and (raw, after) != ("old", "old"):
        yield f"it said that nothing was published, but there is {raw}, then {after}: {said}"
    if code == 2 and "half way" not in said and (raw, after) != ("old", "old"):
        yield f"it failed, but there is {raw}, then {after}: {said}"
    if code > 128 and "nothing was published" not in said and after != "new":
        yield f"it was stopped, and did not say that nothing was published: {said}"


def _make_small_parts():
    """Let methods keep finished parts of a few people."""
    from shoal.methods.kte_hide import sets
    from shoal.search import partition, partners

    partition._PART, partners._PART, partners._HALO, sets._KEPT_EVERY_S = 4, 4, 4, 0.0


def serve(folder):
    """Answer one question per line."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        worlds = {}
        for line in sys.stdin:
            question = json.loads(line)
            method = question.pop("method", "shoal")
            if method not in worlds:
                _make_small_parts()
                worlds[method] = World(Path(folder).resolve() / method, method)
                gc.freeze()  # so that a fork need not copy what the collector touches
            world = worlds[method]
            answer = world.kills(**question) if "moments" in question else world.answer(**question)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    os._exit(0)  # its libraries would say what they leak


if __name__ == "__main__":
    serve(sys.argv[1])
