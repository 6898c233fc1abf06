"""Processes that begin with everything imported: each is forked from one that imported it once, and did nothing else.

Importing costs a second; else such a process is like a fresh one: its own arguments, folder and streams, the usual
handlers of signals, and the exit code that its code asks for.
"""

import os
import sys
import tempfile
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer

COMMAND = "from shoal.cli import main\nmain()"
# A command that sends a signal to itself when it touches a folder for the n-th time, or so many seconds later.
TOUCH = """
import os, sys, threading
from shoal.cli import main
folder, number, left, later = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
def touched(event, arguments):
    global left
    if event.startswith(("open", "os.", "shutil.")) and any(str(path).startswith(folder) for path in arguments[:2]):
        left -= 1
        if left == 0 and later:
            threading.Timer(later, os.kill, (os.getpid(), number)).start()
        elif left == 0:
            os.kill(os.getpid(), number)
sys.addaudithook(touched)
sys.argv[1:] = sys.argv[5:]
main()
"""
_LIBRARIES = ["cyclopts", "duckdb", "pandas", "pyarrow.parquet", "pyproj", "rich.progress", "scipy.stats"]
_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload([*_LIBRARIES, "shoal.testing", "shoal.comparison"])


def _begin(code, arguments, folder, out, err):
    for number, stream in ((1, out), (2, err)):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<forked>", "exec"), {"__name__": "__main__"})


class Forked:
    """A process that runs code with arguments, like `python -c`."""

    def __init__(self, code, *arguments):
        read, write = os.pipe()
        self.out, self._err = os.fdopen(read, "rb"), tempfile.TemporaryFile()  # noqa: SIM115  closed in `end`
        with Connection(write, readable=False) as out, Connection(os.dup(self._err.fileno())) as err:
            begun = (code, [str(one) for one in arguments], Path.cwd(), out, err)
            self._process = _CONTEXT.Process(target=_begin, args=begun, daemon=True)  # ends with the tests
            self._process.start()

    def send_signal(self, number):
        with suppress(ProcessLookupError):  # it has ended
            os.kill(self._process.pid, number)

    def end(self):
        """Wait for the end; give the exit code, standard output and standard error."""
        patience = Timer(300, self._process.kill)
        patience.start()
        with self.out, self._err:
            out = self.out.read()
            self._process.join()
            patience.cancel()
            self._err.seek(0)
            return self._process.exitcode, out.decode(errors="replace"), self._err.read().decode(errors="replace")


def forked(code, *arguments):
    """Run code to its end."""
    return Forked(code, *arguments).end()
