VENV := .venv
STAMP := $(VENV)/.installed
RUN := $(VENV)/bin/python -m

# What the compiled core is built from.
NATIVE := $(addprefix stream_fs/selector/kernels/native/, \
	CMakeLists.txt _native.pyx loops.h iteration.c neighbours.c redundancy.c)

# The interpreter for .venv; if empty, the first Python >= 3.11 that is found.
PYTHON ?=
# Number of parallel test processes.
WORKERS ?= 2
# A directory with data sets for `make quality` and `make evaluate`, in addition to the built-in ones,
# and the directory for their results.
DATA ?=
OUTPUT ?= build/evaluation
# Additional arguments for test, bench, bench-…, quality, evaluate or campaign.
ARGS ?=
# The locked versions of the peers with which the service is compared.
PEERS := tests/benchmarks/peers
# If not empty, `make demo` keeps running at the end.
KEEP ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo check test audit campaign bench bench-selector bench-capacity bench-peers \
	quality evaluate wheels format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s%s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## create .venv with locked versions

$(STAMP): constraints.txt pyproject.toml $(NATIVE)
	@echo "creating $(VENV) with locked versions; the first time takes a minute or two …"
	@PYTHON="$(PYTHON)" bash .ci/venv $(VENV)
	@# Wheels only: a build from source would download build tools that are not locked.
	@$(RUN) pip install --quiet --require-hashes --only-binary :all: -r constraints.txt
	@$(RUN) pip install --quiet --no-deps --no-build-isolation --editable .
	@$(VENV)/bin/stream-fs version
	@touch $@

demo: setup ## run the service on a real broker with real data; KEEP=1 keeps it running
	@# Without a broker the demo names what is missing, and runs on files.
	@bash .ci/broker || true
	@$(VENV)/bin/stream-fs demo $(if $(KEEP),--keep)

check: setup ## check formatting, lint, types and layers
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict
	$(VENV)/bin/lint-imports

test: check ## check, then run the whole test suite
	bash .ci/broker
	$(RUN) pytest -n $(WORKERS) --dist worksteal $(ARGS)

audit: setup ## look up known vulnerabilities of the pinned packages
	$(RUN) tests.campaign.audit

campaign: setup ## inject faults on real brokers, and compare the output byte by byte
	@bash .ci/broker
	$(RUN) tests.campaign $(ARGS)

bench: setup ## measure the service on a real broker against floors and goals; --quick, --sections
	@bash .ci/broker
	$(RUN) tests.benchmarks.service $(ARGS)

bench-selector: setup ## measure time and memory of the selector
	$(RUN) tests.benchmarks.selector $(ARGS)

bench-capacity: setup ## measure the throughput of the service: prints deploy/capacity.md
	@$(RUN) tests.benchmarks.capacity $(ARGS)

bench-peers: setup ## compare the service with Quix Streams, Bytewax and a plain loop
	@$(RUN) tests.benchmarks.peers $(ARGS)

quality: setup ## compare rankings on the built-in data sets and on those in DATA
	$(RUN) stream_fs.cli evaluate $(if $(DATA),--data $(DATA)) --output $(OUTPUT) --experiments ranking $(ARGS)

evaluate: setup ## run every experiment, also on the data sets in DATA; the report is in OUTPUT
	$(RUN) stream_fs.cli evaluate $(if $(DATA),--data $(DATA)) --output $(OUTPUT) $(ARGS)

wheels: setup ## build wheel and sdist into dist/, check both and try them in empty environments
	@bash .ci/wheels $(VENV) dist

format: setup ## format the code and apply automatic fixes
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

lock: setup ## write both constraints.txt from pyproject.toml; UPGRADE=--upgrade selects newest versions
	$(VENV)/bin/uv pip compile pyproject.toml --no-config --all-extras --group dev $(UPGRADE) \
		--universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--custom-compile-command "make lock" --quiet --output-file constraints.txt
	@# Existing pins are preferred, so the peers use the same versions as the service.
	cp constraints.txt $(PEERS)/constraints.txt
	$(VENV)/bin/uv pip compile pyproject.toml $(PEERS)/requirements.in --no-config \
		--universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
		--custom-compile-command "make lock" --quiet --output-file $(PEERS)/constraints.txt

clean: ## remove caches and build results, but not .venv
	rm -rf build dist .cache .coverage .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find stream_fs tests -name __pycache__ -type d -prune -exec rm -rf {} +
