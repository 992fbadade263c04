# make demo       install what is needed and run the main job
# make test       the fast tests, two at a time: run them before each commit (at most six minutes on two cores)
# make test-slow  the tests marked slow: run them before a release (half an hour)
# make sentences  renew the sentences that tests compare with (tests/sentences.json); look at the difference
# make check      format, lint, types, import contract, words; Biome for the page's JavaScript where npm is installed
# make check-words  spelling, and the phrases of tools/banned_words.txt
# make docs       check the pages drawn from records, build the documentation into site/; a warning is an error
# make mutations  change losses, estimators and graphs one expression at a time and see that a test fails (an hour);
#                 make mutations ONLY='tacit.losses.kernels*' changes one file
# make wheel      build the wheel into dist/
# make sdist      build the source distribution into dist/
# make test-packages  build both, inspect them, and run them in an empty environment and an unpacked tree
# make bench      measure speed and accuracy (three quarters of an hour; leave the machine alone meanwhile)
# make peers      install the other methods that benchmarks/existence compares with, and the data of CausalCompass
# make robustness  tables that break the assumptions, tacit and the other methods (hours), and their page
# make fuzz       thousands of wrong inputs, others each time; writes docs/results/fuzzing and its page

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Tests run in two processes with one thread each; those of a file follow each other in one process, which shares
# its fixtures, until the other has nothing left to do.
PYTEST := $(BIN)/pytest -n 2 --dist worksteal

.PHONY: demo test test-slow sentences check check-words check-scripts format format-scripts docs wheel sdist test-packages \
	bench peers robustness fuzz mutations clean

demo: .venv/installed
	$(BIN)/tacit demo

test: .venv/installed-dev
	@tools/chromium.sh --install >/dev/null
	$(PYTEST)

test-slow: .venv/installed-docs
	@tools/chromium.sh --install >/dev/null
	$(PYTEST) -m 'slow and not gpu and not paper' --ignore tests/fuzz/test_fuzz_long.py

sentences: .venv/installed-dev
	$(BIN)/pytest --renew -m 'not gpu and not paper'

check: check-words
	$(BIN)/ruff format --check src tests benchmarks tools
	$(BIN)/ruff check src tests benchmarks tools
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory check-scripts; \
	else echo "npm is not installed: the page's JavaScript is not checked"; fi

check-words: .venv/installed-dev
	$(BIN)/codespell *.md Makefile .github docs src benchmarks tools
	$(BIN)/python tools/check_words.py

check-scripts: node_modules/installed
	node_modules/.bin/biome ci

format: .venv/installed-dev
	$(BIN)/ruff format src tests benchmarks tools
	$(BIN)/ruff check --fix src tests benchmarks tools
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory format-scripts; fi

format-scripts: node_modules/installed
	node_modules/.bin/biome check --write

docs: .venv/installed-docs
	$(BIN)/python tools/check_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: .venv/bin/python
	$(PIP) wheel --quiet --no-deps --wheel-dir dist .

sdist: .venv/installed-dev
	$(BIN)/python -m build --sdist --outdir dist .

test-packages: .venv/installed-dev
	$(BIN)/pytest -m slow tests/docs/test_wheel.py

bench: .venv/installed-dev
	$(BIN)/python benchmarks/step_vs_pyg.py
	$(BIN)/python benchmarks/replicas.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/gradient_variance.py
	$(BIN)/python benchmarks/best.py
	$(BIN)/python benchmarks/limit.py
	$(BIN)/python -m benchmarks.scale
	$(BIN)/python benchmarks/waiting.py
	$(BIN)/python benchmarks/busy.py
	$(BIN)/python benchmarks/page.py

# causalcompass pins old versions of numpy and others; its generators of data work with newer ones.
peers: .venv/installed-peers
	$(PIP) install --quiet --no-compile --no-deps causalcompass==0.1.2

robustness: peers
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.robustness --sets 100 \
		--methods 'tacit,ridge,stability selection,PCMCI,PCMCI+,VARLiNGAM' --truth none,edges
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.robustness --sets 100 --truth plain
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.robustness --sets 20 --methods 'tacit fit' --truth none,edges
	$(BIN)/python -m benchmarks.robustness.page

fuzz: .venv/installed-dev
	TACIT_FUZZ_RECORD=docs/results/fuzzing/figures.json $(BIN)/pytest -s -m slow tests/fuzz/test_fuzz_long.py
	$(BIN)/python tests/fuzz/fuzz_page.py

mutations: .venv/installed-mutations
	TACIT_TYPECHECK=0 OMP_NUM_THREADS=1 $(BIN)/mutmut run --max-children 2 $(ONLY)
	$(BIN)/mutmut results

.venv/bin/python:
	$(PYTHON) -m venv .venv

# Modules are compiled when they are first imported, as most never are; this needs bytecode to be written.
export PYTHONDONTWRITEBYTECODE :=
INSTALL := $(PIP) install --quiet --no-compile --constraint constraints.txt --editable

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing tacit and what it needs into .venv"
	$(INSTALL) '.[command]'
	@touch $@

.venv/installed-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing tacit and its tools ($*) into .venv"
	$(INSTALL) '.[dev,$*]'
	@touch $@ .venv/installed .venv/installed-dev

# Biome and axe-core, for development: the package and its pages need no node.
node_modules/installed: package.json package-lock.json
	npm ci --silent
	@touch $@

clean:
	rm -rf .venv node_modules build dist mutants runs site .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
