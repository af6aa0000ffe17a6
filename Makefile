# Set-up and the daily commands. `make help` lists them.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
export MUNIMENT_SAMPLE_DATA ?= $(wildcard ../shared/data/registry)
export MUNIMENT_REFERENCE_BENCH ?= $(wildcard ../shared/bench)

.PHONY: help install serve test check prove bench lock

help: ## list these commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# The environment is complete when its stamp is newer than what it is made from.
install: $(VENV)/.installed ## build .venv from the pinned requirements

$(VENV)/.installed: requirements/dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements/dev.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

serve: install ## start the registry with its fictional demo data
	$(BIN)/muniment serve --demo

lock: install ## pin every dependency by hash
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --quiet --custom-compile-command "make lock" pyproject.toml -o requirements/runtime.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --quiet --custom-compile-command "make lock" pyproject.toml --group dev -o requirements/dev.lock
