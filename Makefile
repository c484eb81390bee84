# Every target works on a bare machine: Python 3.11 or later with its own pip, git and make.
# It makes .venv when there is none and leaves a current one alone.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
PART ?=

python := $(VENV)/bin/python
pip := $(python) -m pip install --quiet --disable-pip-version-check
# Sources that tools look at; folders that are not there yet are skipped.
sources := $(wildcard src integrations tests benchmarks notebooks examples)

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-lowest check format bench real-model docs notebooks dist update-examples clean

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- environment ---------------------------------------------------------------------------------

$(python):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "muntin needs Python 3.11 or later; this is $$($(PYTHON) --version)." \
		       "Name another one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp per set of packages: what is installed is installed again only when pyproject.toml changes.
$(VENV)/.installed-%: pyproject.toml | $(python)
	@$(python) -m pip --version >/dev/null 2>&1 || $(python) -m ensurepip --upgrade >/dev/null
	@echo "installing muntin[$*] into $(VENV)"
	@# uv does in seconds what the pip of Python 3.11 does in minutes; where it is not to be had, pip.
	@# What uv has to say is not shown: pip meets the same trouble, if there is any, and says it.
	@{ $(pip) uv && $(VENV)/bin/uv pip install --quiet --python $(python) --editable ".[$*]"; } 2>/dev/null || \
		$(pip) --editable ".[$*]"
	@touch $@

install: $(VENV)/.installed-dev ## Install everything a contributor needs into .venv

# --- use -----------------------------------------------------------------------------------------

demo: $(if $(wildcard $(VENV)/.installed-dev),$(VENV)/.installed-dev,$(VENV)/.installed-cli) ## Watch a window being divided (ARGS="--window 2000 ...")
	@$(python) -m muntin demo --html muntin-report.html $(ARGS)

# --- tests and gates -----------------------------------------------------------------------------

# One worker a core; whoever is done takes over from the others.
parallel := -n auto --dist worksteal --inline-snapshot=disable

test: $(VENV)/.installed-dev ## Run the quick tests (a few minutes)
	@MUNTIN_PROFILE=quick $(python) -m pytest --quiet $(parallel) $(ARGS)

test-all: $(VENV)/.installed-dev ## Run every test: slow ones, ten times the examples, notebooks
	@MUNTIN_PROFILE=full $(python) -m pytest --quiet $(parallel) -m "" --timeout 1800 $(ARGS)

check: check-style check-types check-floors check-words ## Check style, types, architecture, dependencies and spelling
.PHONY: check-style check-types check-floors check-words
check-style: $(VENV)/.installed-dev
	$(python) -m ruff check
	$(python) -m ruff format --check
check-types: $(VENV)/.installed-dev
	$(VENV)/bin/basedpyright --level error
	$(python) -m mypy --strict tests/typed_examples
check-floors: $(VENV)/.installed-dev
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(VENV)/bin/deptry src integrations
check-words: $(VENV)/.installed-dev
	$(VENV)/bin/codespell

format: $(VENV)/.installed-dev ## Put every file into the house style
	$(python) -m ruff check --fix --exit-zero
	$(python) -m ruff format

# --- figures, documents --------------------------------------------------------------------------

bench: $(VENV)/.installed-bench ## Measure against peers, PART=selection for one part; writes docs/figures.md
	$(python) -m benchmarks $(PART) $(ARGS)

bench-%: $(VENV)/.installed-bench ## Measure one part, e.g. bench-selection
	$(python) -m benchmarks $* $(ARGS)

real-model: $(VENV)/.installed-real-model ## Run a small real model (builds llama.cpp: 20 minutes, then 30)
	$(python) -m benchmarks.real_model $(ARGS)

docs: $(VENV)/.installed-docs ## Build the documentation into site/
	$(python) scripts/build_architecture.py
	$(VENV)/bin/zensical build --clean $(ARGS)
	$(python) scripts/check_links.py site

notebooks: $(VENV)/.installed-dev ## Execute notebooks/*.py into the .ipynb beside them
	$(python) notebooks/build.py $(ARGS)

# --- publishing ----------------------------------------------------------------------------------

dist: $(VENV)/.installed-release ## Build wheel and sdist of muntin and of both shims into dist/, and check them
	rm -rf dist
	$(python) -m build --outdir dist .
	$(python) -m build --wheel --outdir dist integrations/langchain-muntin
	$(python) -m build --wheel --outdir dist integrations/llama-index-muntin
	$(python) -m twine check --strict dist/*
	$(python) scripts/check_dist.py $(ARGS)

# What users install, in the oldest versions that pyproject.toml allows, with the newest test tools.
lowest := .venvs/lowest
lowest_tools := pytest pytest-asyncio pytest-examples pytest-socket pytest-timeout pytest-xdist \
	hypothesis dirty-equals inline-snapshot anyio pyyaml
lowest_tests := tests/unit tests/pipeline tests/properties

test-lowest: $(VENV)/.installed-release ## Test the library with the oldest versions that it allows
	$(pip) uv
	$(VENV)/bin/uv venv --quiet --clear --python $(python) $(lowest)
	$(VENV)/bin/uv pip install --quiet --python $(lowest) --resolution lowest-direct --editable ".[all]"
	$(VENV)/bin/uv pip install --quiet --python $(lowest) $(lowest_tools)
	MUNTIN_PROFILE=quick $(lowest)/bin/python -m pytest --quiet -n auto $(lowest_tests) $(ARGS)

update-examples: $(VENV)/.installed-dev ## Rewrite the printed output in examples of README and docs
	$(python) -m pytest --quiet tests/test_examples.py --update-examples

clean: ## Remove .venv, caches and everything built
	rm -rf $(VENV) .hypothesis .pytest_cache .ruff_cache .mypy_cache .import_linter_cache site dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
