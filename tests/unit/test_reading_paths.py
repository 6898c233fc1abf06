"""Users told by files and folders stay the same, however the files are packed or written: nobody is cut into parts."""

import bz2
import gzip
import zipfile

import pytest

import shoal
from shoal.errors import UnreadableFile

ROWS = "time,lat,lng\n{}T08:00:00Z,39.9,116.4\n{}T09:00:00Z,39.8,116.3\n"
DAYS = ("2026-03-01", "2026-03-02", "2026-03-03")
FILES = {f"{user}/Trajectory/{day}.csv": ROWS.format(day, day) for user in ("000", "001") for day in DAYS}


def plain(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def packed(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.bz2").write_bytes(bz2.compress(text.encode()))
    return folder


def zipped(folder, files):
    folder.mkdir()
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"Data/{name}", text)
    return folder / "all.zip"


def zip_of_packed(folder, files):
    folder.mkdir()
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for name, text in files.items():
            archive.writestr(f"{name}.bz2", bz2.compress(text.encode()))
    return folder / "all.zip"


def zip_each(folder, files):
    for name, text in files.items():
        target = (folder / name).with_suffix(".zip")
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w") as archive:
            archive.writestr(name.rpartition("/")[2], text)
    return folder


def other_encoding(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode("utf-16"))
    return folder


def gzipped(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


WAYS = [plain, packed, zipped, zip_of_packed, zip_each, other_encoding, gzipped]


def labels(source, role):
    people = shoal.read(source, columns=f"user={role}")
    return dict(zip(people.labels.to_pylist(), people.counts.tolist(), strict=True))


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_folder_of_files_is_one_person(way, tmp_path):
    assert labels(way(tmp_path / "in", FILES), "@folder") == {"000": 6, "001": 6}
    nearer = {name.replace("/Trajectory", ""): text for name, text in FILES.items()}
    assert labels(way(tmp_path / "nearer", nearer), "@folder") == {"000": 6, "001": 6}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_files_of_one_name_are_one_person(way, tmp_path):
    """Dots in a name are part of it."""
    files = {f"{day}/{user}.csv": ROWS.format(day, day) for user in ("ann.lee", "ann.may") for day in DAYS}
    assert labels(way(tmp_path / "in", files), "@file") == {"ann.lee": 6, "ann.may": 6}


def test_the_sheets_of_a_workbook_are_one_person(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="it writes the workbook")
    for user in ("ann", "bob"):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for day in DAYS:
            sheet = book.create_sheet(day)
            for line in ROWS.format(day, day).splitlines():
                sheet.append(line.split(","))
        book.save(tmp_path / f"{user}.xlsx")
    assert labels(tmp_path, "@file") == {"ann": 6, "bob": 6}


@pytest.mark.parametrize("source", ["", ["", "a.csv"], ["a.csv", ""]])
def test_an_input_without_a_name_is_not_the_current_folder(source, tmp_path, monkeypatch):
    """A variable of the shell that is empty would read everything that is there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("uid,datetime,lat,lng\nann,2026-03-01T08:00:00Z,39.9,116.4\n")
    with pytest.raises(UnreadableFile, match="no name"):
        shoal.read(source)
    assert len(shoal.read(".")) == 1


def test_names_in_an_archive_do_not_lead_out_of_it(tmp_path):
    path = tmp_path / "odd.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../../a.csv", "/etc/b.csv", "x/../../c.csv"):
            archive.writestr(name, ROWS.format(DAYS[0], DAYS[0]))
    work = tmp_path / "work"
    work.mkdir()
    people = shoal.read(path, columns="user=@file", run=shoal.Run(work_dir=work))
    assert people.labels.to_pylist() == ["a", "b", "c"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["odd.zip", "work"]
    assert list(work.iterdir()) == []
