# `make help` lists the targets. Everything runs in .venv, which `make setup` creates.

PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.thinwire-setup

# What an install depends on; Python sources are not listed because the install is editable.
INSTALL_INPUTS := pyproject.toml CMakeLists.txt constraints.txt $(wildcard native/*/*.h native/*/*.cc)

.DEFAULT_GOAL := help
.PHONY: help setup lab test lint demo bench docs mutants clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv and install thinwire into it with everything developers need

$(STAMP): $(INSTALL_INPUTS)
	$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "thinwire needs Python >= 3.11; write make PY=python3.11")'
	$(PY) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	touch $@

lab: ## install what emulated networks need (as root, where apt-get is; never an error)
	@missing=""; PATH="$$PATH:/usr/sbin:/sbin"; \
	for tool in ip:iproute2 tc:iproute2 unshare:util-linux iptables:iptables; do \
	  command -v $${tool%%:*} > /dev/null || missing="$$missing $${tool##*:}"; \
	done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "emulated networks need$$missing: installing"; \
	  { DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing || \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $$missing; }; \
	  } > /dev/null 2>&1 || echo "could not install$$missing; tests of emulated networks will be skipped"; \
	else \
	  echo "emulated networks need$$missing, which is not installed; their tests will be skipped"; \
	fi

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint lab ## lint, then the test suite
	$(BIN)/python -m pytest -n 2 --dist loadgroup

demo: setup lab ## run the demonstration
	$(BIN)/thinwire demo

bench: setup ## measure the headline table on emulated networks, and renew the pages that show it
	$(BIN)/python -m benchmarks.headline
	$(BIN)/python benchmarks/pages.py

docs: setup ## build the documentation into site/, failing on any warning
	$(BIN)/zensical build --clean --strict

mutants: setup ## break the code on purpose and check that the tests notice
	$(BIN)/python tests/mutants/run.py

clean: ## remove everything that is built
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
