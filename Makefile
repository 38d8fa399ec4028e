# Each target sets up what it needs: a fresh clone needs nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: train test results format clean

train: $(VENV)/installed
	$(BIN)/aggrevated train cartpole

test: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest

# All of docs/results, or one page of it: make results PAGE=hopper OPTIONS="--engine processes --workers 8"
results: $(VENV)/installed
	$(BIN)/python benchmarks/results.py $(PAGE) $(OPTIONS)

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/installed: pyproject.toml packages/reader/pyproject.toml packages/experiments/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable 'packages/reader[pdf]' --editable packages/experiments
	touch $@

clean:
	rm -rf $(VENV) runs
	find src packages -name '*.nb[ci]' -delete
