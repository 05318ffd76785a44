# make demo   opens the quickstart notebook in JupyterLab
# make check  runs the linters, the types and the fast tests, for daily work
# make test   runs every check: linters, types, front end, unit tests, notebooks, browser, parity with HTA
# make lowest runs the tests with the lowest version of every dependency that pyproject.toml allows
# make pins   writes the versions in .venv to .ci/constraints.txt, for CI
# make bench  measures speed and memory beside HTA and Perfetto's UI, and writes docs/performance.md
# make docs   builds the documentation site into site/
# make parity asks HTA and us the same questions about every shared trace, and compares
# make faults puts slips into a copy of the code, one at a time, and lists those that no test notices
#
# Both install into .venv, from a fresh clone, and are quick the second time. Node.js is used where there is one and
# else installed into .venv from PyPI. The tests compare with Holistic Trace Analysis, which gets .hta to itself.

# hundreds of processes import pandas: what Python compiled of it is kept, whatever the environment says
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo check fast test unit browser-tests lowest pins lint lint-frontend frontend browser built bench speed \
	docs parity faults screenshot clean

# the first Python >= 3.11; `make PYTHON=...` chooses another one
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && { echo $$p; break; }; done)
BIN := .venv/bin
# Installs into the environment of an interpreter; with UV=uv that does it, in seconds. Of what is installed Python
# compiles what is used.
into = $(if $(UV),$(UV) pip install --quiet --refresh-package hta_widgets --python $(1),$(1) -m pip \
	--disable-pip-version-check install --quiet --no-compile)
PORT ?= 8888
# Of browsers with their JupyterLab, which are several processes each, no more than two.
BROWSERS ?= 2
WORKERS ?= logical
# A file of tests at a time on each core. A worker that ends in mid-test stays away: with another in its place
# pytest-xdist waits for ever for the rest of that file (3.8).
BY_FILE := --dist loadfile --max-worker-restart 0
SIDE_BY_SIDE := -n $(WORKERS) --maxprocesses 4 $(BY_FILE)

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

demo: .venv/.demo
	@$(BIN)/python hatch_build.py
	@$(BIN)/hta-widgets warm-up
	@echo "JupyterLab prints its address below: open it in a browser if none opens by itself."
	$(BIN)/jupyter lab --ServerApp.port=$(PORT) $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/notebooks/quickstart.ipynb

# what most edits can break, without real traces and what is marked slow; mypy runs beside the tests
check: built
	+@$(MAKE) --no-print-directory --jobs=2 lint lint-frontend fast

fast: .venv/.test
	HTA_WIDGETS_TRACES=none $(BIN)/python -m pytest $(SIDE_BY_SIDE) -q -r fE -m "not slow" \
		tests/test_*.py $(addprefix tests/,analysis charts trace widgets)

# CI runs its parts on machines of their own, or side by side.
test: lint frontend unit browser-tests

# In order of the files' names: by their size, a long file of few tests would come last and alone. Tests of browsers,
# which run beside in CI and have time-outs, come first.
unit: built .hta/.installed .venv/ipykernel6
	nice -n 5 $(BIN)/python -m pytest $(SIDE_BY_SIDE) --no-loadscope-reorder --nbval --nbval-current-env notebooks tests --ignore=tests/browser

# A browser on two busy cores is late at times, and a change should not be refused for that: in CI what fails is asked
# once more, and the first failure is printed whole. It is a race, in a test or in the product: mend it.
AGAIN := $(if $(CI),--reruns 1 --rerun-show-tracebacks -rR)
browser-tests: built browser
	$(BIN)/python -m pytest -n $(BROWSERS) $(BY_FILE) $(AGAIN) -p no:nbval tests/browser

# An environment of its own, made anew: what is lowest changes with pyproject.toml only, but wheels come and go.
LOWEST := .venv-lowest/bin
lowest:
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	$(LOWEST)/python -m pip --disable-pip-version-check install --quiet uv
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python --resolution lowest-direct -e '.[hta]'
	$(LOWEST)/uv pip install --quiet --python $(LOWEST)/python distributed hypothesis nbformat pytest pytest-xdist
	$(LOWEST)/python -m pytest $(SIDE_BY_SIDE) $(addprefix tests/,analysis answers cli hta report trace widgets)

# the kernel before version 7, which many still run, for the tests that ask both
.venv/ipykernel6: .venv/.created
	$(call into,$(BIN)/python) --no-deps --target $@ ipykernel==6.31.0 nest-asyncio==1.6.0 psutil==7.2.2

# names and versions only: no address, no hash, so that any registry serves
pins: .venv/.test
	{ echo "# The versions that CI installs; written by make pins."; \
		$(BIN)/python -m pip freeze --exclude-editable | grep -E '^[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.!+]*$$'; } > .ci/constraints.txt

lint: .venv/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-frontend: built
	$(BIN)/python hatch_build.py run lint
	$(BIN)/python hatch_build.py run typecheck

frontend: lint-frontend
	$(BIN)/python hatch_build.py test

browser: .venv/.test
	$(BIN)/python -m tests.browser.chromium
	$(BIN)/python -m tests.browser.managers

# what is older than its sources: the front end's bundles, the kernels
built: .venv/.test
	$(BIN)/python hatch_build.py

# make bench BENCH="small_files --rounds 5" measures a part
bench: .venv/.bench .hta/.installed .bench/.installed browser
	$(BIN)/python -m benchmarks $(BENCH)

# A small part, once, for CI, whose machines are too uneven for more than a warning. It is CPU that is measured, of
# interpreters that have compiled what they import: other work may run beside.
speed: .hta/.installed .bench/.installed
	.hta/bin/python -c "import hta.trace_analysis"
	.bench/bin/python -m compileall -q .bench/lib/python3.*/site-packages/hta_widgets
	.bench/bin/python -c "from hta_widgets import TraceExplorer, analysis"
	@$(BIN)/python -m benchmarks --in-ci 2>/dev/null || echo "NOTE: a ratio fell below its floor, see above." >&2

parity: .venv/.test .hta/.installed
	HTA_WIDGETS_EVERY_CASE=1 $(BIN)/python -m pytest tests/parity

# make faults FAULTS="--area cli --resume" judges some of them
faults: built .hta/.installed
	$(BIN)/python -m tests.faults -j 2 $(FAULTS)

docs: .venv/.docs
	$(BIN)/python -m docs.build site

screenshot: built browser
	$(BIN)/python -m docs.screenshots

clean:
	rm -rf .venv .venv-lowest .hta .bench site js/node_modules hta_widgets/widgets/static

# Stamps: installed since pyproject.toml last changed?
.venv/.%: .venv/.created pyproject.toml hatch_build.py
	$(call into,$(BIN)/python) -e '.[$*]'
	@touch $@

.venv/.created:
	@test -n "$(PYTHON)" || { echo "hta_widgets needs Python 3.11 or newer: install it, or run make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; \
		echo "$(PYTHON) cannot create virtual environments; on Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	@touch $@

# the wheel as pip builds it in isolation, which is what users have and what is measured
.bench/.installed: $(shell find hta_widgets js/src -name '*.py' -o -name '*.ts*' -o -name '*.css') | built
	$(BIN)/python -m benchmarks.installed
	@touch $@

.hta/.installed: .venv/.created tests/parity/requirements.txt
	@rm -rf .hta
	$(BIN)/python -m venv .hta
	$(call into,.hta/bin/python) -r tests/parity/requirements.txt
	@touch $@
