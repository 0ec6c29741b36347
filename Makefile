# Everything starts from a fresh clone: Python 3.11+, make and a C++ compiler are all it takes.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What an editable installation depends on: the engine, and which packages there are.
ENGINE := $(wildcard engine/*) CMakeLists.txt pyproject.toml $(wildcard src/mvenet/*/__init__.py)

# Compiled files are kept: each process that a test starts would compile all of the library again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test docs release-check test-torch test-slow lint format bench bench-search profile-search bench-predict bench-command league league-peers scaling default paper-figures paper-tables \
    paper-theory paper-explain paper-relatives fuzz wheel test-versions sanitize sanitize-threads cross emulate clean

demo: $(STAMP)
	$(BIN)/mvenet demo

# A process for each core and one more, since some wait for a browser; one thread each: the tests are many and small. A
# file stays in one: its tests share models.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $$(($$($(BIN)/python -c "import os; print(os.cpu_count())") + 1)) --dist loadfile

# The site, in build/site: open index.html there, or put the folder on any web server. Examples whose code and library
# are as they were are not run again; make docs GALLERY=kept runs none that was run before. The code of the pages is run first.
docs: $(VENV)/.docs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto -m pages tests/house/test_docs.py tests/house/test_notebooks.py
	rm -rf build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	$(BIN)/python tools/site/check.py build/site

# All that must hold before a version is tagged (docs/develop/release.md); PYTHONS as for make wheel.
release-check: $(STAMP)
	$(BIN)/python tools/release.py before
	$(MAKE) lint test docs
	rm -rf dist
	$(MAKE) wheel
	$(BIN)/python tools/release.py after dist

# Networks of one's own have an environment of their own: PyTorch is gigabytes on some platforms.
test-torch: .venv-torch/.installed
	OMP_NUM_THREADS=1 .venv-torch/bin/python -m pytest -q -n auto --dist worksteal -m "not slow" -k "torch or own-network" \
	    tests/torch tests/house/test_architecture.py tests/house/test_docs.py tests/house/test_registries.py

test-slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow --timeout 3600

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror engine/*.hpp engine/*.cpp

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i engine/*.hpp engine/*.cpp

# The peers get an environment of their own: nobody who tests mvenet needs PyTorch.
bench: $(STAMP) .venv-bench/.installed
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/speed.py --peers .venv-bench/bin/python

# mvenet and its peers on the same folds (folders MVENET_DATA and MVENET_TABLES). Takes days, can be stopped at any
# time and goes on where it was: make league LEAGUE="--methods CatBoost --tables yacht boston"
league: $(STAMP)
	$(BIN)/python benchmarks/league.py run $(LEAGUE); told=$$?; $(BIN)/python benchmarks/league.py page && exit $$told

# An environment for each of the peers, or for some: make league-peers PEERS="tabpfn boosting"
PEERS ?= tabpfn quantile-forest pytabkit treeffuser lightgbmlss bde boosting
league-peers: $(STAMP)
	$(BIN)/python benchmarks/league.py install $(PEERS)

# Rows a second, memory and latency beside onnxruntime and PyTorch.
bench-predict: .venv-torch/.installed
	.venv-torch/bin/python benchmarks/predict.py

# Needs the data sets (MVENET_DATA), as does the next.
bench-search: $(STAMP) .venv-bench/.installed
	$(BIN)/python benchmarks/search_speed.py --peers .venv-bench/bin/python

# Where the seconds of a search are (MVENET_DATA, MVENET_TABLES): make profile-search TABLES="500x13 concrete"
profile-search: $(STAMP)
	$(BIN)/python benchmarks/profile_search.py $(TABLES)

bench-command: $(STAMP)
	$(BIN)/python benchmarks/command.py

scaling: $(STAMP)
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/memory.py

# The measurement behind recipes.DEFAULT.
default: $(STAMP)
	$(BIN)/python benchmarks/default.py

# The paper, part by part. The tables take hours, can be stopped at any time and go on where they were:
# make paper-tables DATASETS="yacht boston"
paper-figures: $(STAMP)
	$(BIN)/python paper/figures.py

paper-tables: $(STAMP)
	$(BIN)/python paper/run.py $(DATASETS)
	$(BIN)/python paper/run.py --default $(DATASETS)
	$(BIN)/python paper/tables.py --write

# Why a cell differs from the paper's, and what its figure of x² may have been trained with.
paper-explain: $(STAMP)
	$(BIN)/python paper/run.py protein --epochs 50 --runs paper/runs/50-epochs --results paper/results/50-epochs
	$(BIN)/python paper/explain.py --write
	$(BIN)/python paper/readings.py --write

# Every other way to train a mean-variance network, on the same folds: hours, stopped and gone on with like the tables.
paper-relatives: $(STAMP)
	for script in sine toys; do if test -x .venv-torch/bin/python; then .venv-torch/bin/python paper/relatives_$$script.py; \
	else $(BIN)/python paper/relatives_$$script.py; fi || exit 1; done
	$(BIN)/python paper/relatives.py $(DATASETS)
	$(BIN)/python paper/relatives_own.py $(DATASETS)
	@if test -x .venv-torch/bin/python; then .venv-torch/bin/python paper/relatives_torch.py $(DATASETS); \
	else echo "The relatives in PyTorch are left out, as there is no .venv-torch: make test-torch makes it."; fi
	$(BIN)/python paper/relatives_tables.py --write

paper-theory: $(STAMP)
	$(BIN)/python paper/theory.py

# Damaged and hostile model files, tables and stores: make fuzz COUNT=100000
COUNT ?= 20000
fuzz: $(STAMP)
	$(BIN)/python tests/fuzz/fuzz_persistence.py --count $(COUNT)
	$(BIN)/python tests/fuzz/fuzz_input.py --count $(COUNT)

# A manylinux wheel for each Python here (one for 3.12 and later) and the sdist, tried in empty environments.
# Those that run: a name on the PATH may be a shim of pyenv without a version behind it.
PYTHONS ?= $(foreach v,3.11 3.12 3.13 3.14,$(shell python$(v) -c "import sys; print(sys.executable)" 2>/dev/null))
wheel:
	$(PYTHON) tools/wheels.py $(PYTHONS)

# The tests with other Pythons, and with the oldest and the newest dependencies that are allowed.
test-versions:
	$(PYTHON) tools/versions.py $(PYTHONS)

# The engine's tests with AddressSanitizer and UndefinedBehaviorSanitizer; then the fleet and the crew without Python with
# ThreadSanitizer (which wants its addresses where they are: setarch).
HARNESS := tests/harness/harness.cpp engine/ensemble.cpp engine/fleet.cpp engine/kernel_baseline.cpp
HARNESS_FLAGS := -std=gnu++20 -Iengine -pthread -fno-math-errno -fno-trapping-math -ffp-contract=fast
sanitize: $(STAMP)
	$(MAKE) $(VENV)-sanitize/.installed VENV=$(VENV)-sanitize \
	    INSTALL="-C cmake.define.MVENET_SANITIZE=ON -C build-dir=build/sanitize"
	ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	    $(VENV)-sanitize/bin/python -m pytest -q --capture=sys tests/engine tests/models tests/automatic -k "engine or models"
	$(MAKE) sanitize-threads

sanitize-threads: $(STAMP)
	mkdir -p build/tsan
	$(CXX) $(HARNESS_FLAGS) -O1 -g -fsanitize=thread $(HARNESS) -o build/tsan/harness
	TSAN_OPTIONS="halt_on_error=1 exitcode=66" $(BIN)/python tests/harness/check.py setarch -R build/tsan/harness

# The engine for 64-bit Arm, run by an emulator: apt-get install g++-aarch64-linux-gnu qemu-user
cross: $(STAMP)
	mkdir -p build/cross
	aarch64-linux-gnu-g++ $(HARNESS_FLAGS) -O3 -static $(HARNESS) -o build/cross/harness
	$(BIN)/python tests/harness/check.py qemu-aarch64 build/cross/harness

# The AVX-512 code compiled for AVX2, slow but the same: to test it on any processor.
emulate:
	$(MAKE) $(VENV)-emulate/.installed VENV=$(VENV)-emulate \
	    INSTALL="-C cmake.define.MVENET_EMULATE=ON -C build-dir=build/emulate"
	$(VENV)-emulate/bin/python -m pytest -q tests/engine tests/models tests/automatic -k "engine or models"

clean:
	rm -rf build .venv*

CXX ?= c++
$(STAMP): $(ENGINE)
	@command -v $(CXX) >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	    { echo "mvenet needs a C++20 compiler and found none: install one (Debian: apt-get install g++; macOS: xcode-select --install) or set CXX."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4"
	$(BIN)/python -m pip install --quiet --no-build-isolation $(INSTALL) --editable . --group dev
	touch $@

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

# This release resolves to the small CPU build here; skorch then takes what is there.
.venv-torch/.installed: $(ENGINE)
	test -x .venv-torch/bin/python || $(PYTHON) -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	.venv-torch/bin/python -m pip install --quiet torch==2.13.0
	.venv-torch/bin/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4"
	.venv-torch/bin/python -m pip install --quiet --no-build-isolation --editable . --group torch
	touch $@

.venv-bench/.installed: benchmarks/requirements.txt
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet -r $<
	touch $@
