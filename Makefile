# Everything from a fresh clone: `make demo`, `make test`. Each target sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src native -type f -not -name '*.pyc' -not -name '*.so') pyproject.toml CMakeLists.txt README.md LICENSE

# Where a compiler is there, a missing core is an error and not a slow success.
COMPILER := $(shell command -v c++ || command -v g++ || command -v clang++)
ifneq ($(COMPILER),)
export SLIMSVM_REQUIRE_CORE := 1
endif

PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all test-browser docs lint types bench promises papers fuzz safety sanitize tsan fallback dist clean

demo: $(VENV)/installed-cli,plot
	$(BIN)/slimsvm demo --picture build/frontier.png

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 -m "not slow and not browser"

test-all: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 -m "not browser"

# The HTML report and the pages of examples/browser, in a headless Chromium.
test-browser: $(VENV)/installed-browser
	$(BIN)/python -m pytest -m browser tests/browser

# The site, into build/docs: runs the gallery, needs no network, and every warning is an error.
docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs build/docs
	$(BIN)/python tools/check_links.py build/docs

lint: $(VENV)/installed-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-lint
	$(BIN)/mypy

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/predict.py
	$(BIN)/python benchmarks/compress.py
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/perceptron.py
	$(BIN)/python benchmarks/mirror.py
	$(BIN)/python benchmarks/early_exit.py
	$(BIN)/python benchmarks/growing.py
	$(BIN)/python benchmarks/c_export.py
	$(BIN)/python benchmarks/libsvm_service.py
	$(BIN)/python benchmarks/stream.py
	$(BIN)/python benchmarks/mnist.py
	$(BIN)/python benchmarks/metric.py
	$(BIN)/python benchmarks/pipelines.py

# What compress promises and keeps, and auto beside its rivals: hours. An interrupted run goes on from the rows that are there.
promises: $(VENV)/installed-bench
	$(BIN)/python benchmarks/promise.py
	$(BIN)/python benchmarks/auto.py
	$(BIN)/python benchmarks/auto_metric.py
	$(BIN)/python benchmarks/confidence.py

# The experiments of the papers, in full: over an hour on two cores. One of them: python papers/NAME/run.py --help
papers: $(VENV)/installed-papers
	for run in papers/*/run.py; do $(BIN)/python $$run || exit 1; done

# Mutated model and data files, for ten minutes: no crash, no foreign exception, no hang, bounded memory.
fuzz: $(VENV)/installed-test
	$(BIN)/python tools/fuzz.py

# The figures of SECURITY.md, except those of the sanitizers: over an hour.
safety: $(VENV)/installed-test
	$(BIN)/python tools/fuzz.py --seed 1 --count 210000 --seconds inf --what models
	$(BIN)/python tools/fuzz.py --seed 1 --count 55000 --seconds inf --what data
	$(BIN)/python tools/fuzz.py --what every
	$(BIN)/python -m pytest -m "" tests/test_storage_hostile.py tests/cli/test_hostile_data.py tests/test_hostile_models.py
	$(BIN)/python tools/kills.py
	$(BIN)/python tools/dask_kills.py
	$(BIN)/python tools/parity.py
	$(BIN)/python tools/parity.py --learned

COMMA := ,
# $(call sanitized,FOLDER,SANITIZERS): the core built with sanitizers, into build/FOLDER, with names for their reports.
define sanitized
	rm -rf build/$(1)
	@echo "Building the core with sanitizers: $(2) ..."
	$(PIP_INSTALL) --no-deps --no-build-isolation --target build/$(1) \
	  -C cmake.define.SLIM_SANITIZE=$(2) -C cmake.build-type=RelWithDebInfo -C install.strip=false -C build-dir=build/$(1)-objects .
endef

# The core under AddressSanitizer and UndefinedBehaviorSanitizer, on every instruction set of this processor, through the
# tests that evaluate machines and look-ups, solve margin problems, train by mini-batches and read text.
ASAN = LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libubsan.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=build/sanitize
sanitize: $(VENV)/installed-test
	$(call sanitized,sanitize,address$(COMMA)undefined)
	for set in baseline avx2 avx512; do \
	  if ! SLIMSVM_INSTRUCTION_SET=$$set $(ASAN) $(BIN)/python -c "import slimsvm._core" > build/sanitize/$$set.log 2>&1; then \
	    grep -q "this processor or this build of slimsvm does not have" build/sanitize/$$set.log || { cat build/sanitize/$$set.log; exit 1; }; \
	    echo "*** $$set IS NOT CHECKED: this processor does not have it."; continue; \
	  fi; \
	  echo "Instruction set $$set:"; \
	  SLIMSVM_INSTRUCTION_SET=$$set $(ASAN) $(BIN)/python -m pytest tests/test_evaluation.py tests/test_evaluation_input.py \
	    tests/test_extremes.py tests/test_mirror_head.py tests/test_early_exit_core.py \
	    tests/methods/mirror/test_dynamic_programme.py tests/optim/test_hull.py tests/optim/test_margin_compiled.py \
	    tests/cli/test_svmlight.py tests/test_lookups.py tests/methods/large_margin/test_compiled_descent.py \
	    tests/contracts || exit 1; \
	done

# The core under ThreadSanitizer, through the tests with several threads. Planted races, in the pool of threads and in the
# core that the tests use, show first that races are reported. Tests that fork are left out, because ThreadSanitizer does
# not support threads in a forked child, and so are tests that import polars: it starts a thread behind ThreadSanitizer's
# back, which then crashes.
TSAN = LD_PRELOAD="$$(c++ -print-file-name=libtsan.so)" TSAN_OPTIONS=exitcode=66 OPENBLAS_NUM_THREADS=1 PYTHONPATH=build/tsan
# $(call reported,COMMAND): the command must end with ThreadSanitizer's exit code and its report of a race.
reported = $(TSAN) $(BIN)/python $(1) > build/tsan/planted.log 2>&1; \
	  test $$? = 66 && grep -m 1 "data race" build/tsan/planted.log || { cat build/tsan/planted.log; exit 1; }
tsan: $(VENV)/installed-test
	$(call sanitized,tsan,thread)
	c++ -std=c++17 -shared -fPIC -g -O1 -fsanitize=thread -Inative tests/native/planted_race.cpp native/parallel.cpp \
	  -o build/tsan/planted_race.so
	$(call reported,-c "import ctypes; ctypes.CDLL('build/tsan/planted_race.so').planted_race(3)")
	$(call reported,tests/native/planted_race.py)
	@echo "The planted races are reported. The core:"
	$(TSAN) $(BIN)/python -m pytest -k thread tests/test_core_threads.py tests/test_evaluation.py \
	  tests/test_mirror_head.py tests/test_early_exit_core.py tests/methods/mirror/test_dynamic_programme.py \
	  tests/test_lookups.py tests/methods/large_margin/test_compiled_descent.py

# Without a compiler the installation succeeds, says so, and the NumPy implementation answers.
fallback: $(VENV)/dependencies
	rm -rf build/fallback
	mkdir -p build
	@echo "Installing without a compiler into build/fallback ..."
	CC=/bin/false CXX=/bin/false $(BIN)/pip install -v --no-deps --no-build-isolation --target build/fallback \
	  -C build-dir=build/fallback-objects . > build/fallback.log 2>&1 || (tail -20 build/fallback.log; exit 1)
	grep -q "the compiled core could not be built" build/fallback.log
	SLIMSVM_REQUIRE_CORE=0 PYTHONPATH=build/fallback $(BIN)/python -W ignore -c \
	  "import slimsvm._core as c, slimsvm; assert not c.available; slimsvm.show_versions()"

dist: $(VENV)/build-tools
	rm -rf dist
	@echo "Building the source distribution and a wheel ..."
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m zipfile -l dist/*.whl

clean:
	rm -rf $(VENV) build dist wheelhouse .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Third-party packages are built, where need be, in environments of their own: their build tools are none of ours. The
# project alone is built with the tools in .venv, so that a build after a change takes seconds.
$(VENV)/build-tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slimsvm needs Python 3.11 or later: \
	make PYTHON=python3.12, for example.")'
	@echo "Installing build tools into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.18" ninja build
	@touch $@

$(VENV)/dependencies: $(VENV)/build-tools pyproject.toml tools/requirements.py
	@echo "Installing NumPy, SciPy and scikit-learn ..."
	@$(BIN)/python tools/requirements.py > $(VENV)/requirements.txt
	@$(PIP_INSTALL) -r $(VENV)/requirements.txt
	@touch $@

$(VENV)/installed: $(VENV)/dependencies $(SOURCES)
	@echo "Building slimsvm$(if $(COMPILER), and its compiled core,: there is no C++ compiler so without its compiled core) ..."
	@mkdir -p build
	@$(PIP_INSTALL) --no-deps --no-build-isolation .
	@touch $@

$(VENV)/installed-%: $(VENV)/installed tools/requirements.py
	@echo "Installing the packages for: $* ..."
	@$(BIN)/python tools/requirements.py $* > $(VENV)/requirements-$*.txt
	@$(PIP_INSTALL) -r $(VENV)/requirements-$*.txt
	@touch $@
