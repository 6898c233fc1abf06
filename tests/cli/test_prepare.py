"""What is done at installation: kernels are compiled, and the image is one that needs no root and no network."""

import re
from pathlib import Path

from shoal.jit import kernels_folder

ROOT = Path(__file__).parents[2]


def test_prepare_says_where_the_kernels_are_and_leaves_nothing_else(run, tmp_path):
    out = run("prepare", "--work-dir", tmp_path, check=0).stdout
    assert out.strip().endswith(str(kernels_folder()))
    done = run("prepare", "--work-dir", tmp_path, "--json", check=0)
    assert done.json == {"ok": True, "compiled": 0, "methods": ["shoal"]}
    assert list(tmp_path.iterdir()) == []


def test_the_image():
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    last = lines[max(n for n, line in enumerate(lines) if line.startswith("FROM")) :]
    (user,) = (line.split()[1] for line in last if line.startswith("USER"))
    assert int(user.split(":")[0]) > 0
    assert 'ENTRYPOINT ["shoal"]' in last
    assert not any(re.search(r"https?:|\bARG\b.*(TOKEN|KEY|PASSWORD)", line) for line in lines)
    copied = {name for line in lines if line.startswith("COPY") and "--from" not in line for name in line.split()[1:-1]}
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)
