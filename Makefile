# make demo   install what is needed and run the main job
# make test   install what is missing and pass the tests
# make check  format, lint, types, import contract
# make docs   build the documentation into site/; a warning is an error
# make wheel  build the wheel into dist/
# make bench  measure speed and accuracy (three quarters of an hour; leave the machine alone meanwhile)
# make fuzz   thousands of wrong inputs, others each time; writes docs/results/fuzzing and its page (a quarter of an hour)
# make mutations  change the formulas one at a time and see that a test fails (ten minutes)

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test check format docs wheel bench fuzz mutations clean

demo: .venv/installed
	$(BIN)/tacit demo

test: .venv/installed-dev
	@tools/chromium.sh --install >/dev/null
	$(BIN)/pytest

check: .venv/installed-dev
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/installed-dev
	$(BIN)/ruff format src tests benchmarks
	$(BIN)/ruff check --fix src tests benchmarks

docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: .venv/bin/python
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .

bench: .venv/installed-dev
	$(BIN)/python benchmarks/step_vs_pyg.py
	$(BIN)/python benchmarks/replicas.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/gradient_variance.py
	$(BIN)/python benchmarks/best.py
	$(BIN)/python benchmarks/limit.py
	$(BIN)/python benchmarks/scale.py

fuzz: .venv/installed-dev
	TACIT_FUZZ_RECORD=docs/results/fuzzing/figures.json $(BIN)/pytest -s -m slow tests/fuzz
	$(BIN)/python tests/fuzz/fuzz_page.py

mutations: .venv/installed-dev
	$(BIN)/python tests/mutations.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing tacit and what it needs into .venv"
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing tacit and its development tools into .venv"
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ .venv/installed

clean:
	rm -rf .venv build dist runs site .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
