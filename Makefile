# Two lines matter: `make run` and `make test`. packaging/setup.py does the set-up for both, once.
PYTHON ?= python3

.PHONY: run setup test lint check stress lock

run:
	@$(PYTHON) packaging/setup.py run

setup:
	@$(PYTHON) packaging/setup.py

test: setup
	QT_QPA_PLATFORM=offscreen .venv/bin/python -m pytest

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

check: lint test

stress: setup
	QT_QPA_PLATFORM=offscreen .venv/bin/python -m pytest -m stress --timeout 3600

lock:
	@$(PYTHON) packaging/setup.py lock
