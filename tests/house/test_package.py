"""What is published: a wheel that is the same for everybody, with a description whose links lead somewhere."""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest

import shoal

ROOT = Path(__file__).parents[2]
URL = "https://example.org/shoal"
RELATIVE = re.compile(r"\]\((?!https?:|mailto:|#)[^)]*\)")


def build(folder, url="", *, source=ROOT, kind="wheel", umask=0o022, zone="UTC"):
    """Build the wheel, or the sdist, of a source folder into a folder."""
    env = {**os.environ, "SHOAL_URL": url, "TZ": zone}
    env.pop("SOURCE_DATE_EPOCH", None)  # `make dist` does not pass it on
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder]
    subprocess.run(command, cwd=source, env=env, umask=umask, check=True, capture_output=True)
    (built,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return built


def digest(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def described(wheel):
    """Return the metadata of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_is_the_same_whoever_builds_it(wheel, tmp_path):
    again = build(tmp_path, umask=0o077, zone="Pacific/Kiritimati")
    assert digest(again) == digest(wheel)


def test_the_wheel_is_the_same_built_from_the_sdist_in_another_folder(wheel, tmp_path):
    """With files of other times and modes, as somebody has them who checks a published wheel."""
    sdist = build(tmp_path, kind="sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "there", filter="data")
    (source,) = (tmp_path / "there").iterdir()
    for path in source.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1, 1) if path.is_file() else None)
    assert digest(build(tmp_path / "wheel", source=source, umask=0o077, zone="America/Caracas")) == digest(wheel)
    again = build(tmp_path / "sdist", source=source, kind="sdist", umask=0o077)
    assert digest(again) == digest(sdist)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (scripts,) = (archive.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.*") if path.is_file()}
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == {name for name in source if "__pycache__" not in name and ".egg-info" not in name}
    assert {"shoal/py.typed", "shoal/cli/flags.json"} <= packed
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert re.findall(r"^(\S+) = (\S+)$", scripts, re.MULTILINE) == [
        ("shoal", "shoal.cli:main"),
        ("shoal-privacy", "shoal.cli:main"),
    ]


def test_the_name_the_version_and_what_it_needs(wheel):
    about = described(wheel)
    assert (about["Name"], about["Version"]) == ("shoal-privacy", shoal.__version__)
    assert re.fullmatch(r">=3\.\d+", about["Requires-Python"])
    needs = about.get_all("Requires-Dist")
    assert all(re.search(r">=\d", need) for need in needs if "extra ==" not in need)
    supported = [text.rpartition(" ")[2] for text in about.get_all("Classifier") if ":: Python :: 3." in text]
    assert supported[0] == about["Requires-Python"].removeprefix(">=")
    extras = set(about.get_all("Provides-Extra"))
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras == set(declared)
    for extra in extras - {"all"}:  # all that an extra needs, `all` needs too
        wanted = {re.split(r"[<>=\[ ]", need)[0] for need in declared[extra]}
        assert {need for need in needs if "extra == 'all'" in need and re.split(r"[<>=\[ ]", need)[0] in wanted}


def test_links_of_the_description(wheel, tmp_path):
    """They are absolute where it is known where the project is; else there are none."""
    bare, known = described(wheel), described(build(tmp_path, url=f"{URL}/"))
    for about in (bare, known):
        assert not RELATIVE.search(about.get_payload())
        assert len(about.get_payload()) > 2000
    assert bare.get_all("Project-URL") is None
    links = dict(text.split(", ") for text in known.get_all("Project-URL"))
    assert links["Homepage"] == URL
    assert links["Changelog"] == f"{URL}/blob/v{shoal.__version__}/CHANGELOG.md"
    targets = re.findall(rf"\({URL}/(?:blob|raw)/v{re.escape(shoal.__version__)}/([^)]*)\)", known.get_payload())
    assert len(targets) > 5
    assert all((ROOT / target).is_file() for target in targets)
