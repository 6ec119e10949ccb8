# Two lines matter: `make run` and `make test`. packaging/setup.py does the set-up for both, once.
PYTHON ?= python3

.PHONY: run setup test lint lint-style lint-format lint-types lint-imports check stress lock selftest screenshots
.PHONY: package package-test

run:
	@$(PYTHON) packaging/setup.py run

setup:
	@$(PYTHON) packaging/setup.py

# Two workers, each with files of its own, so that a model is loaded once. They get them in the order of their names: the
# small ones of tests/ui are last, and both workers end together.
test: setup
	QT_QPA_PLATFORM=offscreen .venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: lint-style lint-format lint-types lint-imports

lint-style: setup
	.venv/bin/ruff check .

lint-format: setup
	.venv/bin/ruff format --check .

lint-types: setup
	.venv/bin/mypy

lint-imports: setup
	.venv/bin/lint-imports

check: # what CI runs
	.ci/run

selftest: setup
	.venv/bin/kvdesk selftest

screenshots: setup
	.venv/bin/python packaging/screenshots.py

package:
	@$(PYTHON) packaging/package.py $(PACKAGE_OPTIONS)

package-test:
	@$(PYTHON) packaging/package_test.py

stress: setup
	QT_QPA_PLATFORM=offscreen .venv/bin/python -m pytest -m stress --timeout 3600

lock:
	@$(PYTHON) packaging/setup.py lock
	@$(PYTHON) packaging/package.py --lock
