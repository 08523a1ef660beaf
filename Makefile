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

.PHONY: demo test lint types bench promises papers sanitize fallback dist clean

demo: $(VENV)/installed-cli,plot
	$(BIN)/slimsvm demo --picture build/frontier.png

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2

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

# What compress promises and keeps, and auto beside its rivals: hours. An interrupted run goes on from the rows that are there.
promises: $(VENV)/installed-bench
	$(BIN)/python benchmarks/promise.py
	$(BIN)/python benchmarks/auto.py

# The experiments of the papers, in full: over an hour on two cores. One of them: python papers/NAME/run.py --help
papers: $(VENV)/installed-papers
	for run in papers/*/run.py; do $(BIN)/python $$run || exit 1; done

# The core under AddressSanitizer and UndefinedBehaviorSanitizer, through the tests that evaluate machines.
sanitize: $(VENV)/installed-test
	rm -rf build/sanitize
	$(BIN)/pip install -q --no-deps --no-build-isolation --target build/sanitize \
	  -C cmake.define.SLIM_SANITIZE=address,undefined -C build-dir=build/sanitize-objects .
	LD_PRELOAD="$$(c++ -print-file-name=libasan.so) $$(c++ -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=build/sanitize \
	  $(BIN)/python -m pytest tests/test_evaluation.py tests/test_evaluation_input.py tests/test_extremes.py \
	  tests/test_mirror_head.py tests/test_early_exit_core.py tests/methods/test_programme.py tests/optim/test_hull.py \
	  tests/contracts

# Without a compiler the installation succeeds, says so, and the NumPy implementation answers.
fallback: $(VENV)/build-tools
	rm -rf build/fallback
	CC=/bin/false CXX=/bin/false $(BIN)/pip install -v --no-deps --no-build-isolation --target build/fallback \
	  -C build-dir=build/fallback-objects . > build/fallback.log 2>&1 || (tail -20 build/fallback.log; exit 1)
	grep -q "the compiled core could not be built" build/fallback.log
	SLIMSVM_REQUIRE_CORE=0 PYTHONPATH=build/fallback $(BIN)/python -W ignore -c \
	  "import slimsvm._core as c, slimsvm; assert not c.available; slimsvm.show_versions()"

dist: $(VENV)/build-tools
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m zipfile -l dist/*.whl

clean:
	rm -rf $(VENV) build dist wheelhouse .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/build-tools:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.18" ninja build
	touch $@

$(VENV)/installed: $(VENV)/build-tools $(SOURCES)
	mkdir -p build
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation .
	touch $@

$(VENV)/installed-%: $(VENV)/installed
	$(BIN)/pip install -q --disable-pip-version-check --no-build-isolation ".[$*]"
	touch $@
