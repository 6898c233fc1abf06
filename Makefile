# Two commands on a fresh machine: `make demo` and `make test`. Both set up what they need in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

# Bytecode is kept, beside what is installed: without it every process compiles the libraries anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(abspath $(VENV))/bytecode

.PHONY: demo test test-all lint bench docs clean
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

lint: $(VENV)/.test $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test
	@for b in bench/bench_*.py; do $(BIN)/python $$b || exit 1; done

bench-%: $(VENV)/.test
	$(BIN)/python bench/bench_$*.py

docs: $(VENV)/.docs
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/reference.py
	$(BIN)/zensical build --clean

clean:
	rm -rf $(VENV) site shoal-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
