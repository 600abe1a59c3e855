# Two commands do everything: `make run` trains a network, `make test` checks the project.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: run test clean

run: .venv/run
	$(BIN)/graphfm train --method graphfm-ib --epochs 30

test: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses 2
	TRITON_INTERPRET=1 $(BIN)/python -m pytest --numprocesses 2 tests/kernels

clean:
	rm -rf .venv build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/run: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "GraphFM needs Python 3.11 or newer; this is " + sys.version.split()[0] + " (make PYTHON=python3.12 ...)")'
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	@touch $@

.venv/dev: .venv/run
	$(PIP) --editable '.[dev]'
	@touch $@
