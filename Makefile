VENV := .venv
STAMP := $(VENV)/.installed
RUN := $(VENV)/bin/python -m

# The interpreter that .venv is made with; when empty, the first Python >= 3.11 that is found.
PYTHON ?=
# Test processes at a time.
WORKERS ?= 2
# A directory with data sets for `make quality` and `make evaluate`, beside those inside scikit-learn,
# and where their results go.
DATA ?=
OUTPUT ?= build/evaluation
# More arguments for what test, bench, bench-…, quality, evaluate or campaign runs.
ARGS ?=
# Where the versions are locked of what the service is compared with.
PEERS := tests/benchmarks/peers
# With any value, `make demo` keeps running at the end.
KEEP ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo check test audit campaign bench bench-selector bench-capacity bench-peers \
	quality evaluate format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s%s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv with the locked versions of everything

$(STAMP): constraints.txt pyproject.toml hatch_build.py $(wildcard stream_fs/selector/*.c)
	@echo "making $(VENV) with the locked versions of everything; the first time takes a minute or two …"
	@PYTHON="$(PYTHON)" bash .ci/venv $(VENV)
	@# Wheels only: building from source would fetch build tools that are not locked.
	@$(RUN) pip install --quiet --require-hashes --only-binary :all: -r constraints.txt
	@$(RUN) pip install --quiet --no-deps --no-build-isolation --editable .
	@$(VENV)/bin/stream-fs version
	@touch $@

demo: setup ## a real broker, real data, the service, and what it finds; KEEP=1 keeps it running
	@# Without a broker the demo says what is missing, and runs on files.
	@bash .ci/broker || true
	@$(VENV)/bin/stream-fs demo $(if $(KEEP),--keep)

check: setup ## formatting, lint, types and layers
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict
	$(VENV)/bin/lint-imports

test: check ## check, then the whole test suite
	bash .ci/broker
	$(RUN) pytest -n $(WORKERS) --dist worksteal $(ARGS)

audit: setup ## known vulnerabilities of everything that constraints.txt pins
	$(RUN) tests.campaign.audit

campaign: setup ## attack the service on real brokers, and compare what it publishes byte by byte
	@bash .ci/broker
	$(RUN) tests.campaign $(ARGS)

bench: setup ## the whole service on a real broker, against floors and goals; --quick, --sections
	@bash .ci/broker
	$(RUN) tests.benchmarks.service $(ARGS)

bench-selector: setup ## time and memory of the selector
	$(RUN) tests.benchmarks.selector $(ARGS)

bench-capacity: setup ## what the service can take: prints deploy/capacity.md
	@$(RUN) tests.benchmarks.capacity $(ARGS)

bench-peers: setup ## the service against Quix Streams, Bytewax and a plain loop, by the clock
	@$(RUN) tests.benchmarks.peers $(ARGS)

quality: setup ## the main comparison of rankings, also on the data sets in DATA
	$(RUN) stream_fs.cli evaluate $(if $(DATA),--data $(DATA)) --output $(OUTPUT) --experiments ranking $(ARGS)

evaluate: setup ## every experiment, also on the data sets in DATA; the report is in OUTPUT
	$(RUN) stream_fs.cli evaluate $(if $(DATA),--data $(DATA)) --output $(OUTPUT) $(ARGS)

format: setup ## format the code and repair what lint can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

lock: setup ## write both constraints.txt from pyproject.toml; UPGRADE=--upgrade takes newest versions
	$(VENV)/bin/uv pip compile pyproject.toml --no-config --all-extras --group dev $(UPGRADE) \
		--universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--custom-compile-command "make lock" --quiet --output-file constraints.txt
	@# What is there already is preferred: the peers compute with the versions that we use.
	cp constraints.txt $(PEERS)/constraints.txt
	$(VENV)/bin/uv pip compile pyproject.toml $(PEERS)/requirements.in --no-config \
		--universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--custom-compile-command "make lock" --quiet --output-file $(PEERS)/constraints.txt

clean: ## remove caches and build results; .venv stays
	rm -rf build dist .cache .coverage .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find stream_fs tests -name __pycache__ -type d -prune -exec rm -rf {} +
