#!/usr/bin/env bash
# Make a LIBSVM service faster without touching it: train a model with svm-train, compress it with slimsvm, and predict
# with the unchanged svm-predict. Prints accuracy and seconds of processor time before and after.
#
#   examples/libsvm_service.sh                 # a9a, from the benchmark data beside this checkout
#   examples/libsvm_service.sh TRAIN TEST      # files of your own, in LIBSVM's format
#
# Environment variables: N_VECTORS, the size of the small model (30); PYTHON, a Python with slimsvm[cli] (python3);
# MODEL, a model that svm-train has already trained on TRAIN. Needs Debian's libsvm-tools.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
TIMEFORMAT=%U # seconds of processor time

slimsvm() { "$python" -m slimsvm "$@"; }
accuracy() { awk '/^Accuracy/ { sub("%", "", $3); print $3 }' "$1"; }

if [ $# -eq 2 ]; then
  train=$1 test=$2
else
  train=$folder/a9a test=$folder/a9a.t
  PYTHONPATH="$here/tools${PYTHONPATH:+:$PYTHONPATH}" "$python" - "$train" "$test" << 'END'
import sys
from shared_data import load

data = load("a9a")
for path, part in zip(sys.argv[1:], ("train", "test")):
    with open(path, "w") as file:
        for row, label in zip(data[f"X_{part}"], data[f"y_{part}"]):
            file.write(f"{label:+d}" + "".join(f" {j + 1}:1" for j in row.nonzero()[0]) + "\n")
END
fi

model=${MODEL:-$folder/model}
if [ -z "${MODEL:-}" ]; then
  echo "svm-train …"
  svm-train -q -m 500 "$train" "$model"
fi
slimsvm compress "$model" "$folder/small.slim" --n-vectors "${N_VECTORS:-30}" --method reduced_set
slimsvm export "$folder/small.slim" libsvm "$folder/small.model"

echo "svm-predict, before and after …"
before=$({ time svm-predict "$test" "$model" "$folder/before.txt" > "$folder/before.log"; } 2>&1)
after=$({ time svm-predict "$test" "$folder/small.model" "$folder/after.txt" > "$folder/after.log"; } 2>&1)
agreement=$(paste "$folder/before.txt" "$folder/after.txt" | awk '$1 == $2 { same++ } END { print 100 * same / NR }')

awk -v before="$before" -v after="$after" -v agreement="$agreement" \
  -v is_a9a="$(($# == 0))" -v old="$(accuracy "$folder/before.log")" -v new="$(accuracy "$folder/after.log")" 'BEGIN {
  times = before / (after > 0.001 ? after : 0.001)
  printf "before: accuracy %.2f %%, %.2f seconds\n", old, before
  printf "after:  accuracy %.2f %%, %.2f seconds\n", new, after
  printf "svm-predict is %.0f times faster; %.2f %% of the predictions are the same\n", times, agreement
  if (is_a9a && (times < 20 || old - new > 0.5)) { print "expected at least 20 times faster and at most 0.5 points less accurate"; exit 1 }
}'
