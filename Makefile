# make test   what every change must pass     make faults   crashes, restarts and bad peers, a few minutes
# make demo   see it work                     make bench    measure it, under 10 minutes (DATA=folder: with the paper's data)
# Each needs only Python 3.11+ and make, and works in its own environment, .venv.

PYTHON ?= python3
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: test faults lint demo bench clean

test: lint
	$(BIN)/python -m pytest -m "not faults"

faults: .venv/ready
	$(BIN)/python -m pytest -m faults

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: .venv/ready
	$(BIN)/python -m bench demo $(if $(KEEP),--keep)

bench: .venv/ready-bench
	$(BIN)/python -m bench core --rounds 2 --runs 5 --json bench-results/core.json
	$(BIN)/python -m bench system --many 0 --json bench-results/system.json
	$(BIN)/python -m bench communication --quick --json bench-results/communication.json --out bench-results
	$(BIN)/python -m bench figures --runs 3 --levels 11 $(if $(DATA),--data-dir $(DATA)) \
	  --out bench-results/figures --json bench-results/figures.json
	$(BIN)/python -m bench index bench-results

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
