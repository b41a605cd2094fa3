PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test lint fmt bench clean
help:
	@echo 'make demo    set up, and show the main job on the bundled sample store'
	@echo 'make test    set up, and run every test'
	@echo 'make lint    ruff, mypy, shellcheck, mandoc'
	@echo 'make fmt     format the code'
	@echo 'make bench   measure against what one would use instead'

$(READY): pyproject.toml lib/total_recall/__init__.py $(wildcard bin/* man/*/* awk/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh tests/demo.sh

test: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	BIN=$(BIN) sh tests/lint.sh

fmt: $(READY)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: $(READY)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/bench/bench.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
