"""The switch: move a set of new files into place, all or none, whatever happens in between.

1. The new files lie in private folders beside their targets. The folder of the last one is the *home* of the switch.
2. A journal in the home names every new file and its target. Once it is there, the switch is decided.
3. Each target is kept under a second name beside its new file, then replaced.
4. The journal is removed.

A switch may go together with a `commit` elsewhere, of a database or an object store. It is called between 3 and 4, when
all files are in place: what is published there never lacks its private files.

An error, or an exception from anywhere, takes everything back. A run that is killed between 2 and 4 leaves its journal.
The next command that looks at one of these folders finishes the switch (`mend`). If a file is not what the journal
says, it takes the switch back instead; if that can't be done either, it leaves everything and says where it is.
If a commit elsewhere belongs to the switch, only that place knows whether it happened: the new files stay, those that
they replaced are kept beside them as `NAME.before`, and a warning says so.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import shutil
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shoal.errors import AlreadyExists, OutputError
from shoal.interrupt import undisturbed
from shoal.private import is_ours, private_folders, remove, take

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Undecided", "is_needed", "mend", "place_new", "switch", "sync_folder"]

_JOURNAL, _POINTER, _OLD = "switch.json", "switch.at", "old-"
_TURN_S = 60
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NOTHING = "nothing was published"
_HALF_WAY = (
    "the publication is half way, and could not be taken back: the next command finishes it, or takes it back; "
    "then look with shoal verify"
)
_LOG = logging.getLogger("shoal")


class Undecided(OutputError):
    """Whether a commit elsewhere happened can't be known: the connection was lost while it was asked for."""


class _Stamp(NamedTuple):
    """The size and the time of a file: enough to tell it from another one at the same path."""

    size: int
    ns: int

    @classmethod
    def of_new(cls, path: Path) -> _Stamp:
        """Return the stamp of a file that exists; of a link itself, not of what it leads to."""
        state = path.lstat()
        return cls(state.st_size, state.st_mtime_ns)

    @classmethod
    def of(cls, path: Path) -> _Stamp | None:
        """Return the stamp of a file, or None if there is no file."""
        try:
            return cls.of_new(path)
        except FileNotFoundError:
            return None

    def fits(self, path: Path) -> bool:
        """Return whether the file at a path has this stamp; file systems may cut times to one or two seconds."""
        found = _Stamp.of(path)
        times = {self.ns, *(self.ns // unit * unit for unit in (10**9, 2 * 10**9))}
        return found is not None and found.size == self.size and found.ns in times


class _Move(NamedTuple):
    """One file of a switch: the new file, its target, the second name of what was there, and the stamps of both."""

    new: Path
    target: Path
    old: Path
    stamp: _Stamp
    before: _Stamp | None

    @classmethod
    def read(cls, home: Path, new: str, target: str, old: str, stamp: list[int], before: list[int] | None) -> _Move:
        """Return a move as the journal in its home describes it."""
        new_path, target_path, old_path = (Path(os.path.normpath(home / path)) for path in (new, target, old))
        return cls(new_path, target_path, old_path, _Stamp(*stamp), None if before is None else _Stamp(*before))

    @property
    def is_done(self) -> bool:
        """Whether the new file is in place."""
        return self.stamp.fits(self.target)

    @property
    def is_open(self) -> bool:
        """Whether the new file still waits, and the target is as it was."""
        untouched = not os.path.lexists(self.target) if self.before is None else self.before.fits(self.target)
        return self.stamp.fits(self.new) and untouched

    def do(self, *, overwrite: bool) -> None:
        """Put the new file in place. Without `overwrite`, raise FileExistsError if a file has appeared there."""
        if overwrite:
            self._keep_old()
            self.new.replace(self.target)
        elif not place_new(self.new, self.target):
            raise FileExistsError

    def _keep_old(self) -> None:
        """Keep what is at the target under its second name, unless that was done before."""
        if self.before is None or os.path.lexists(self.old):
            return
        try:
            self.old.hardlink_to(self.target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            copy = self.old.with_suffix(".copy")
            shutil.copy2(self.target, copy)
            sync_folder(copy)  # it is a file, and this works for files too
            copy.rename(self.old)

    def take_back(self) -> bool:
        """Put back what was at the target, if the new file is there; return whether the new file is gone from it."""
        with suppress(OSError):
            if os.path.lexists(self.old) and (self.is_done or not os.path.lexists(self.target)):
                self.old.replace(self.target)
            elif self.before is None and self.is_done:
                self.target.unlink()
        return not self.is_done or self.before == self.stamp


def switch(
    files: list[tuple[Path, Path]],
    *,
    overwrite: bool = False,
    also: list[tuple[Path, Path]] | None = None,
    commit: Callable[[], None] | None = None,
) -> None:
    """Move files out of their private folders into place, all or none, as one step that no signal can split.

    Input: pairs of a new file, in a private folder beside its target, and the target. The last one, the manifest, makes
    the release valid. Those in `also` go first, and replace what is there even without `overwrite`. `commit`, if given,
    is called when all are in place. Guarantee: if it returns, all new files are in place. If it raises AlreadyExists,
    OutputError or anything else, everything is as it was before; should even that fail, the message says so, and the
    next command finishes the switch or takes it back. So it does if the run is killed (`mend`).
    """
    pairs = [*(also or []), *files]
    first = len(pairs) - len(files)
    home, folder = pairs[-1][0].parent, pairs[-1][1].parent
    places = list(dict.fromkeys(target.parent for _, target in pairs))
    with undisturbed(too_late=True), _after_mending(places), _turn(folder):
        mend(folder, has_turn=True)
        try:
            moves = [
                _Move(new, target, new.with_name(f"{_OLD}{number}"), _Stamp.of_new(new), _Stamp.of(target))
                for number, (new, target) in enumerate(pairs)
            ]
            _decide(home, moves, elsewhere=commit is not None)
        except BaseException as error:
            gone = _forget(home)
            if isinstance(error, OSError):
                after = _NOTHING if gone else _HALF_WAY
                raise OutputError(f"writing failed ({error.strerror or 'I/O error'}); {after}") from None
            raise
        try:
            for number, move in enumerate(moves):
                move.do(overwrite=overwrite or number < first)
            for place in places:
                sync_folder(place)
            if commit is not None:
                commit()
        except Undecided:
            _keep_both(moves)
            _forget(home)
            raise
        except BaseException as error:
            _undo(home, moves, error)
            raise
        _forget(home)


@contextmanager
def _after_mending(places: list[Path]) -> Iterator[None]:
    """Mend what is interrupted in these folders, each in its own turn, before the turn of this switch."""
    for place in places:
        mend(place)
    yield


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait until no other run switches files of this folder, or mends a switch in it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise OutputError(f"the output folder can't be opened ({error.strerror}); {_NOTHING}") from None
    try:
        for _ in range(_TURN_S * 20):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
                continue
            except OSError:  # a file system without locks
                break
            break
        else:
            raise OutputError(f"another run is publishing into this folder; {_NOTHING}. Wait for it, then try again")
        yield
    finally:
        with suppress(OSError):
            os.close(handle)


def _decide(home: Path, moves: list[_Move], *, elsewhere: bool) -> None:
    """Write the journal into the home. Its paths are relative, so that it still holds if all folders are moved."""
    base = home.resolve()

    def path_from(file: Path) -> str:
        return os.path.relpath(file.parent.resolve() / file.name, base)

    for other in dict.fromkeys(move.new.parent for move in moves):
        if other != home:
            _write(other, _POINTER, os.path.relpath(base, other.resolve()))
    entries = [(path_from(move.new), path_from(move.target), path_from(move.old), *move[3:]) for move in moves]
    sync_folder(home.parent)
    _write(home, _JOURNAL, {"elsewhere": entries} if elsewhere else entries)


def _write(folder: Path, name: str, content: object) -> None:
    """Write a file of a switch; it is there whole, and on the disk, or not at all."""
    draft = folder / f"{name}.new"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / name)
    sync_folder(folder)


def _forget(home: Path) -> bool:
    """Remove the journal: nothing is to be mended any more. Return whether it is gone."""
    for name in (_JOURNAL, f"{_JOURNAL}.new"):
        with suppress(OSError):
            (home / name).unlink(missing_ok=True)
    return not os.path.lexists(home / _JOURNAL)


def _undo(home: Path, moves: list[_Move], error: BaseException) -> None:
    """Take all moves back; raise AlreadyExists or OutputError if the error was the operating system's."""
    restored = _taken_back(moves)
    if restored:
        restored = _forget(home)
    if isinstance(error, FileExistsError) and restored:
        raise AlreadyExists(f"a file of that name has appeared meanwhile; {_NOTHING}") from None
    if isinstance(error, OSError):
        if not restored:
            after = _HALF_WAY
        elif any(move.before for move in moves):
            after = f"{_NOTHING}; the release that was there is as it was"
        else:
            after = _NOTHING
        raise OutputError(f"moving into place failed ({error.strerror or 'I/O error'}); {after}") from None


def _keep_both(moves: list[_Move]) -> None:
    """Keep the new files in place and the old ones beside them, and log it: either may belong to what is published."""
    for move in moves:
        if os.path.lexists(move.old):
            move.old.replace(move.target.with_name(f"{move.target.name}.before"))
    names = ", ".join(move.target.name for move in moves)
    _LOG.warning(
        "a publication outside of files was interrupted, and may have happened or not: check with shoal verify. If it "
        "did, %s belong to it; if not, the files that were there before are beside them, named .before",
        names,
    )


def _taken_back(moves: list[_Move]) -> bool:
    """Take back every move, even if another one can't be; return whether no new file is left in place."""
    gone = [move.take_back() for move in moves]
    return all(gone)


def mend(folder: Path, *, has_turn: bool = False) -> None:
    """Finish, or take back, the switches in this folder whose runs were killed, and log it. Never raises OSError."""
    for one in private_folders(folder):
        if not any(os.path.lexists(one / name) for name in (_JOURNAL, _POINTER)):
            continue
        if not is_ours(one):
            _LOG.warning("an interrupted publication was left alone: %s is open to others", one.name)
            continue
        try:
            _mend(one, folder if has_turn else None)
        except BlockingIOError:
            continue  # its run is alive
        except (OSError, OutputError, ValueError, TypeError, LookupError) as error:
            _LOG.warning("an interrupted publication in %s can't be finished (%s)", one.name, type(error).__name__)


def _mend(folder: Path, turn: Path | None) -> None:
    """Mend the switch that a private folder belongs to, if its run is gone. `turn` is the folder whose turn we have."""
    home = _home_of(folder)
    if not home.parent.is_dir():
        _LOG.warning("%s holds files of an interrupted publication; its other folder is missing", folder.name)
    if not (home / _JOURNAL).exists():
        return
    if not is_ours(home):
        _LOG.warning("an interrupted publication was left alone: %s is open to others", home.name)
        return
    if turn is not None and not turn.samefile(home.parent):
        return  # was mended before the turn
    _require_dead(home)
    with nullcontext() if turn is not None else _turn(home.parent):
        lock = take(home)
        if lock is None:
            return
        try:
            if (home / _JOURNAL).exists():
                _finish(home)
        finally:
            os.close(lock)


def _require_dead(home: Path) -> None:
    """Raise BlockingIOError if the run of a switch is alive, without waiting for its turn."""
    lock = take(home)
    if lock is not None:
        os.close(lock)


def is_needed(folder: Path) -> bool:
    """Return whether a private folder holds files of a switch that is decided and not finished."""
    try:
        home = _home_of(folder)
    except (OSError, ValueError, TypeError):
        return True
    return (home / _JOURNAL).exists() or not home.parent.is_dir()


def _home_of(folder: Path) -> Path:
    """Return the home of the switch that a private folder belongs to: the folder itself if it points to no other."""
    try:
        return Path(folder.resolve(), json.loads((folder / _POINTER).read_text())).resolve()
    except FileNotFoundError:
        return folder.resolve()


def _finish(home: Path) -> None:
    """Finish the switch of a run that was killed; take it back if a file is not what the journal says."""
    journal = json.loads((home / _JOURNAL).read_text())
    elsewhere = isinstance(journal, dict)
    moves = [_Move.read(home, *entry) for entry in (journal["elsewhere"] if elsewhere else journal)]
    name = moves[-1].target.name.removesuffix(".manifest.json")
    if elsewhere and all(move.is_done for move in moves):
        _keep_both(moves)
    elif not elsewhere and all(move.is_done or move.is_open for move in moves):
        for move in moves:
            if not move.is_done:
                move.do(overwrite=True)
                sync_folder(move.target.parent)
        _LOG.warning("an interrupted publication of %s was finished", name)
    elif _taken_back(moves):
        _LOG.warning("an interrupted publication of %s was dropped: its files were changed meanwhile", name)
    else:
        _LOG.warning("an interrupted publication of %s can't be finished; its files are in %s", name, home.name)
        return
    if _forget(home):
        for private in dict.fromkeys([*(move.new.parent for move in moves if move.new.parent != home), home]):
            if is_ours(private):
                remove(private)


def place_new(file: Path, target: Path) -> bool:
    """Put a file at a path that is free; return False if a file is there. The file may stay where it was, too."""
    try:
        target.hardlink_to(file)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            return False
        file.replace(target)
    return True


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
