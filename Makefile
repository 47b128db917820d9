# make test   what every change must pass     make faults   crashes, restarts and bad peers, a few minutes
# make demo   see it work                     make bench    measure it
# make chaos  try to break it, an hour        make audit    known vulnerabilities of the pinned packages
# Each needs only Python 3.11+ and make, and works in its own environment, .venv.

PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: test faults chaos audit lint demo bench clean

test: lint
	$(BIN)/python -m pytest -m "not faults"

faults: .venv/ready
	$(BIN)/python -m pytest -m faults

chaos: .venv/ready
	$(BIN)/python -m tests.chaos --json bench-results/chaos.json

audit: .venv/ready
	$(INSTALL) --editable '.[dev,audit]'
	$(BIN)/python -m bench audit

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: .venv/ready
	$(BIN)/python -m bench demo

bench: .venv/ready-bench
	$(BIN)/python -m bench core --json bench-results/core.json
	$(BIN)/python -m bench system --json bench-results/system.json

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; found $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	@echo "installing the pinned packages into .venv ..."
	$(INSTALL) --editable '.[dev]'
	@touch $@

.venv/ready-bench: .venv/ready
	$(INSTALL) --editable '.[dev,bench]'
	@touch $@

clean:
	rm -rf .venv bench-results
