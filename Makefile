# Two lines matter: `make run` and `make test`. packaging/setup.py does the set-up for both, once.
PYTHON ?= python3
unexport PYTHONDONTWRITEBYTECODE # else each process compiles all that it imports, and tests start hundreds

.PHONY: run setup test lint lint-style lint-format lint-types lint-imports lint-translations check real stress soak lock selftest screenshots screenshots-check lab-figures docs reference
.PHONY: package package-test translations

run:
	@$(PYTHON) packaging/setup.py run

setup:
	@$(PYTHON) packaging/setup.py

# Each of three workers begins with a third of the tests, in their order, so that what a module sets up is set up once; one
# that has ended takes from the others. Two processors have work then while one of the three waits for a child or a timer.
PYTEST := QT_QPA_PLATFORM=offscreen .venv/bin/python -m pytest
SHARED := -n 3 --dist worksteal --max-worker-restart=0

# The tiers unit and integration: see docs/tests.md.
test: setup
	$(PYTEST) $(SHARED)

lint: lint-style lint-format lint-types lint-imports lint-translations

lint-style: setup
	.venv/bin/ruff check .

lint-format: setup
	.venv/bin/ruff format --check .

lint-types: setup
	.venv/bin/mypy

lint-imports: setup
	.venv/bin/lint-imports

# Tells which texts wait for their translation; never fails for them.
lint-translations: setup
	.venv/bin/python packaging/translations.py --check

check: # what CI runs
	.ci/run

selftest: setup
	.venv/bin/kvdesk selftest

# `make screenshots MODEL=FILE`: another model answers than the embedded one.
screenshots: setup
	.venv/bin/python packaging/screenshots.py $(if $(MODEL),--model "$(MODEL)") $(NAMES)

# Lists the pictures that are older than the views they show; not part of `make test`.
screenshots-check: setup
	.venv/bin/python packaging/screenshots.py --check

lab-figures: setup
	.venv/bin/python packaging/lab_figures.py $(NAMES)

# The pages of docs as a site: build/site/index.html.
docs: export NO_MKDOCS_2_WARNING = 1
docs: setup
	.venv/bin/uv venv --quiet --allow-existing build/docs-env
	.venv/bin/uv pip install --quiet --python build/docs-env --group docs
	build/docs-env/bin/mkdocs build --config-file packaging/site/mkdocs.yml

# The parts of docs that follow from declarations; see packaging/reference.py.
reference: setup
	.venv/bin/python packaging/reference.py

# The texts of kvdesk for those who translate them; see packaging/translations.py.
translations: setup
	.venv/bin/python packaging/translations.py

package:
	@$(PYTHON) packaging/package.py $(PACKAGE_OPTIONS)

package-test:
	@$(PYTHON) packaging/package_test.py

# `make stress`: all that takes minutes. `make stress kill`: tests/stress/test_kill.py, one row of it; `make stress matrix`: the
# tests of the tier matrix, wherever they are; `make stress explore`: more random examples for the others that take any.
ifeq ($(firstword $(MAKECMDGOALS)),stress)
ROWS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
ifneq ($(ROWS),)
.PHONY: $(ROWS)
$(ROWS): stress ; @:
endif
endif

stress: setup
ifneq ($(or $(filter matrix,$(ROWS)),$(if $(ROWS),,all)),)
	$(PYTEST) $(SHARED) -m 'matrix and not stress and not soak' --timeout 600
endif
ifneq ($(or $(filter explore,$(ROWS)),$(if $(ROWS),,all)),)
	HYPOTHESIS_PROFILE=explore $(PYTEST) $(SHARED) -m 'hypothesis and not matrix and not real and not stress and not soak' --timeout 600
endif
ifneq ($(or $(filter-out matrix explore,$(ROWS)),$(if $(ROWS),,all)),)
	$(PYTEST) -m stress -rA --timeout 7200 $(patsubst %,tests/stress/test_%.py,$(filter-out matrix explore,$(ROWS)))
endif

# `make real MODELS=DIR`: what a tiny model cannot prove, and the peers, on the GGUF files of a folder. Each part has a process
# of its own, so that the others run where llama.cpp ends one.
real: export KVDESK_REAL_MODELS = $(abspath $(MODELS))
real: setup
	@failed=; for part in tests/real/test_*.py; do \
		$(PYTEST) -m real -v -rap --durations 5 --timeout 2400 $$part || failed="$$failed $$part"; \
	done; [ -z "$$failed" ] || { echo "FAILED:$$failed"; exit 1; }

soak: setup
	$(PYTEST) -m soak -rA --timeout 7200 tests/stress

lock:
	@$(PYTHON) packaging/setup.py lock
	@$(PYTHON) packaging/package.py --lock
