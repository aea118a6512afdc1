# Every target sets the project up the first time; see scripts/setup.sh. ARGS passes more arguments.
.PHONY: help setup demo test test-all test-rest test-long test-around test-connect test-executors test-zones test-full kafka lint bench api notebooks lock clean
BIN := .venv/bin
UV ?= uv
PYTEST := pytest -n 2 --dist loadfile
LOCK := $(UV) pip compile --quiet --universal --python-version 3.10 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1	\2/p' Makefile

setup: ## make .venv: Python, Java, packages, jars (about 900 MB, two minutes, once)
	@scripts/setup.sh

demo: setup ## generator -> bronze -> silver -> gold in ./tidemill-demo
	@$(BIN)/tidemill demo --rate 60 $(ARGS)

test: setup ## the tests of the main job: records to features, exact and safe to repeat
	@$(BIN)/$(PYTEST) -m "not around and not long and not full" $(ARGS)

test-all: ## every group of tests, one after the other, as CI runs them
	@for group in test test-rest test-connect test-zones; do \
		$(MAKE) --no-print-directory $$group || exit; \
	done

test-long: setup ## of the main job what takes minutes: killed processes, thirty days, random schedules
	@$(BIN)/$(PYTEST) -m "long and not zones and not full" $(ARGS)

test-around: setup ## the other tests: aggregates, quality, bundle, notebooks, reports ...
	@$(BIN)/$(PYTEST) -m "around and not full" $(ARGS)

test-rest: setup ## test-long and test-around at once, as CI runs them
	@$(BIN)/$(PYTEST) -m "(long or around) and not zones and not full" $(ARGS)

test-connect: setup ## the core, refresh and command line again, on Spark Connect
	@SPARK_REMOTE='local[2]' $(BIN)/pytest -m "connect and not full" -W ignore::UserWarning $(ARGS)

test-executors: setup ## the core, refresh and command line again, tasks in two processes of their own
	@$(BIN)/pytest -m "connect and not full" --executors $(ARGS)

test-zones: setup ## the core where clocks go back: the machine's clock in Berlin, then in St. John's
	@for zone in Europe/Berlin America/St_Johns; do \
		TZ=$$zone $(BIN)/pytest -m "zones and not full" $(ARGS) || exit; \
	done

test-full: setup ## all of these tests, in their long forms too
	@$(BIN)/$(PYTEST) $(ARGS)

kafka: setup ## a Kafka broker on 127.0.0.1:9092, its data in ./kafka-data, until Ctrl-C
	@$(BIN)/python scripts/kafka.py $(ARGS)

lint: setup ## ruff check, ruff format --check, mypy, the order of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

bench: setup ## what one tick costs, in a small form: under five minutes
	@$(BIN)/python benchmarks/tick.py --warm 3 $(ARGS)

api: setup ## write docs/api.md from the docstrings
	@$(BIN)/python scripts/api_page.py

notebooks: setup ## publish notebooks/*.py as .ipynb
	@$(BIN)/python scripts/notebooks.py

lock: ## resolve both locks again; needs uv
	$(LOCK) --group build --output-file requirements-build.lock
	$(LOCK) pyproject.toml --extra local --extra kinesis --extra quality --extra plots --extra redis --extra serve --extra model --group dev --output-file requirements.lock

clean: ## remove what make made here; the jars stay in the home folder
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
