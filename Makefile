# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

# Bytecode is kept, beside what is installed: without it every process compiles the libraries anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE
# Nor may the day of a build get into what `make dist` makes.
unexport SOURCE_DATE_EPOCH
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/bytecode

# The first and the last versions of everything that shoal needs. Each has an environment of its own.
OLDEST := lowest-direct
LATEST := highest
PYENV := $(shell ls -d $$HOME/.pyenv/versions/3.1[1-9]*/bin/python 2>/dev/null | sort -rV)
NEWEST_PYTHON ?= $(shell for p in python3.14 $(PYENV) python3.13 python3.12 $(PYTHON); do \
  $$p -c '' 2>/dev/null && echo $$p && break; done)
# Reading, anonymizing, verifying and the command line on small data: what a wrong version breaks first.
QUICK := tests/cli/test_commands.py tests/cli/test_startup.py tests/house/test_package.py tests/unit/test_jit.py \
  tests/unit/test_reading_read.py tests/unit/test_reading_times.py tests/unit/test_publishing_write.py \
  tests/unit/test_methods_kscale.py tests/unit/test_verifier_check.py

.PHONY: demo test test-all faults kills fuzz fuzz-guided test-lowest test-newest lint bench docs flags dist image clean
.DEFAULT_GOAL := demo

$(BIN)/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "shoal needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

# One stamp per set of packages: the bare install for the demo, and one for each dependency group.
$(VENV)/.run: pyproject.toml $(BIN)/uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable .
	@touch $@

$(VENV)/.%: pyproject.toml $(VENV)/.run
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group $*
	@touch $@

# Servers that some tests need, if they can be installed; the tests are skipped without.
$(VENV)/.servers: tests/setup/postgres.sh | $(VENV)/.test
	@sh tests/setup/postgres.sh && touch $@ || true

demo: $(VENV)/.run
	$(BIN)/shoal demo

test: $(VENV)/.test $(VENV)/.servers
	$(PYTEST) -n auto --dist worksteal --cov -m "not slow" --hypothesis-profile same

test-all: $(VENV)/.test $(VENV)/.servers
	$(PYTEST) -n auto --dist worksteal --cov
	$(MAKE) test-lowest test-newest QUICK=

# The tests with the lowest and the newest versions; `make test-lowest QUICK=` runs all of them.
test-lowest test-newest: test-%: $(VENV)-%/.test
	$(VENV)-$*/bin/python -m pytest -n auto --dist worksteal -m "not slow" --hypothesis-profile same $(QUICK)

$(VENV)-lowest/.test: FROM = --resolution $(OLDEST)
$(VENV)-lowest/.test: WITH = $(BIN)/python
$(VENV)-newest/.test: FROM = --resolution $(LATEST) --upgrade
$(VENV)-newest/.test: WITH = $(NEWEST_PYTHON)
$(VENV)-%/.test: pyproject.toml $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python "$$($(WITH) -c 'import sys; print(sys.executable)')" $(VENV)-$*
	$(BIN)/uv pip install --quiet --python $(VENV)-$*/bin/python $(FROM) --group test --editable .
	@touch $@

# Every system call of publishing fails or is killed; runs are killed at random moments. Writes docs/reliability.md.
faults: $(VENV)/.test
	$(BIN)/python tests/faults/matrix.py

kills: $(VENV)/.test
	$(BIN)/python tests/faults/kills.py

lint: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Damaged inputs by number, CASES spread over the KINDS (all, unless some are named); the table is written into
# docs/reliability.md. One case again: .venv/bin/python -m tests.fuzz KIND NUMBER
CASES ?= 1000000
JOBS ?= $(shell nproc)
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --cases $(CASES) $(if $(KINDS),--kinds $(KINDS)) --jobs $(JOBS) --docs

# Guided by coverage, where Atheris can be installed: SECONDS for each target.
SECONDS ?= 600
fuzz-guided: $(VENV)/.test $(VENV)/.fuzz
	for t in header manifest text toml geojson; do \
	  $(BIN)/python -m tests.fuzz.guided $$t -max_total_time=$(SECONDS) || exit 1; done

bench: $(VENV)/.test
	@for b in bench/bench_*.py; do $(BIN)/python $$b || exit 1; done

bench-%: $(VENV)/.test
	$(BIN)/python bench/bench_$*.py

# After a change to a setting of ReadOptions, Limits or a method: the table that the command line derives its flags from.
flags: $(VENV)/.run
	$(BIN)/python -m shoal.cli.declared

docs: $(VENV)/.docs flags
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/reference.py
	$(BIN)/zensical build --clean

# What is published, in dist/: wheel, sdist and a list of what an installation holds (SBOM). Wheel and sdist are built again
# from the sdist, in another folder, with other rights and another zone: they must be the same bytes. Set SHOAL_URL to where the repository is published; hatch_build.py makes the links from it.
dist: $(VENV)/.dist
	rm -rf dist build
	$(BIN)/python -m hatchling build -d dist
	mkdir -p build/source && tar -xzf dist/*.tar.gz -C build/source --strip-components 1
	cd build/source && umask 077 && TZ=Asia/Tokyo $(abspath $(BIN))/python -m hatchling build -d ..
	cd dist && for f in *; do cmp $$f ../build/$$f || exit 1; done
	$(BIN)/twine check --strict dist/*
	$(BIN)/uv venv --quiet build/venv --python $(BIN)/python
	$(BIN)/uv pip install --quiet --python build/venv/bin/python dist/*.whl
	cd build && venv/bin/shoal demo --users 200
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON \
	  -o dist/shoal-privacy.cdx.json build/venv/bin/python
	$(BIN)/python -c 'import json, sys; p = "dist/shoal-privacy.cdx.json"; bom = json.load(open(p)); \
	  bom["metadata"]["component"]["version"] = sys.argv[1]; json.dump(bom, open(p, "w"), indent=2)' \
	  "$$(build/venv/bin/shoal --version)"
	cd dist && sha256sum *

image:
	docker build -t shoal .

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest dist build site shoal-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
