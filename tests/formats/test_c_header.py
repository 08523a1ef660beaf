"""What a C header holds beside the arithmetic: names, labels, comment, self-test, sizes; and what export refuses."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
import pytest
from c_programs import C99, CPP, SANITIZED, build, run, self_test
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import slimsvm
from slimsvm.answers import Classes
from slimsvm.calibration import Sigmoid as SigmoidCalibration
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c import files, table_bytes
from slimsvm.heads import LinearHead
from slimsvm.kernels import Linear, Polynomial, Rbf, Sigmoid
from slimsvm.machine import KernelMachine

pytestmark = pytest.mark.skipif(which("gcc") is None, reason="no C compiler")
TYPES = ["float64", "float32", "int16", "int8", "int8_all"]
HOSTILE = ('"; int x = 1; //', "*/ #error out /*", "a\\", "??/", "line\nbreak", "é\x00\x7f", "%s", "\\x41", "012")


def machine(q: int = 1, **parts: Any) -> KernelMachine:
    rng = np.random.default_rng(q)
    head = LinearHead(rng.normal(size=(9, q)), rng.normal(size=q))
    answer = Classes(np.arange(2 if q == 1 else q))
    return KernelMachine(
        **{"kernel": Rbf(0.5), "points": rng.normal(size=(9, 3)), "head": head, "answer": answer} | parts
    )


def text_of(machine: KernelMachine, name: str = "model.h", **options: Any) -> str:
    return files(machine, name, **options).contents[name].decode("ascii")


@pytest.fixture(scope="module")
def iris_model() -> Any:
    X, y = load_iris(return_X_y=True)
    return slimsvm.compress(make_pipeline(StandardScaler(), SVC(gamma=0.3)).fit(X, y), fuse=True), X, y


@pytest.mark.parametrize("tables", TYPES)
def test_export_writes_a_header_whose_self_test_passes(tables: str, iris_model: Any, tmp_path: Path) -> None:
    model, X, y = iris_model
    done = slimsvm.export(model, "c", tmp_path / "iris.h", tables=tables, X=X, y=y)
    assert done.paths == (tmp_path / "iris.h",)
    assert done.facts["n_bytes"] == table_bytes(model.machine_, tables)
    assert self_test(tmp_path / "iris.h", tmp_path) == 0


@pytest.mark.parametrize("tables", TYPES)
def test_the_self_test_notices_a_wrong_number(tables: str, tmp_path: Path) -> None:
    text = text_of(machine(), tables=tables)
    start = text.index("model_coef_table[9]")
    wrong = text[:start] + re.sub(r"(\d)(\d*f?),", lambda m: f"{9 - int(m[1])}{m[2]},", text[start:], count=1)
    (tmp_path / "wrong.h").write_text(wrong)
    assert self_test(tmp_path / "wrong.h", tmp_path) == 1


@pytest.mark.parametrize("tables", TYPES)
def test_names_and_labels_stay_where_they_belong(tables: str, tmp_path: Path) -> None:
    labels = np.array(sorted(HOSTILE))
    one = machine(len(labels), answer=Classes(labels), feature_names=HOSTILE[:3])
    name = "*\\/ 9 modèle.h"
    (tmp_path / "names.h").write_bytes(files(one, name, tables=tables, prefix="names").contents[name])
    lines = [
        '#include <stdio.h>\n#include "names.h"\nint main(void) {',
        f"  const char *s; int i; for (i = 0; i < {len(labels)}; ++i) {{",
        '    for (s = names_label(i); *s; ++s) printf("%02x", *s & 255);',
        '    puts(""); } return 0; }\n',
    ]
    (tmp_path / "main.c").write_text("\n".join(lines))
    build([*C99, str(tmp_path / "main.c"), "-o", str(tmp_path / "main")])
    output = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True, check=True).stdout.splitlines()
    assert output == [str(label).split("\x00")[0].encode().hex() for label in labels]
    comment = (tmp_path / "names.h").read_text().split("*/")[0]
    assert "#error" not in comment
    assert "__ _error out __" in comment


@pytest.mark.parametrize(
    ("labels", "type", "shown"),
    [
        (np.array([-3, 7]), "long", "-3,"),
        (np.array([False, True]), "long", "0,"),
        (np.array([-(2**63), 5]), "long long", "(-9223372036854775807LL - 1),"),
        (np.array([0.5, 2.0]), "double", "0.5,"),
    ],
)
def test_labels_keep_their_type(labels: Any, type: str, shown: str, tmp_path: Path) -> None:
    text = text_of(machine(answer=Classes(labels)))
    assert f"static inline {type} model_label(int place)" in text
    assert shown in text
    (tmp_path / "model.h").write_text(text)
    assert self_test(tmp_path / "model.h", tmp_path) == 0


def test_prefixes() -> None:
    assert "static inline int my_digits_v2_predict(" in text_of(machine(), "my-digits v2.h")
    assert "static inline int model_7_predict(" in text_of(machine(), "7.h")
    assert "static inline int model_predict(" in text_of(machine(), "数字.h")
    assert "static inline int x9_predict(" in text_of(machine(), prefix="x9")
    for wrong in ("9x", "a b", "é", "", "x" * 41, 5):
        with pytest.raises(ValueError, match="prefix of the C export must be at most 40 letters"):
            files(machine(), "model.h", prefix=wrong)


def test_the_same_machine_gives_the_same_bytes_without_time_or_place() -> None:
    for tables in TYPES:
        text = text_of(machine(), tables=tables)
        assert text == text_of(machine(), tables=tables)
        assert machine().digest() in text
        for word in ("math.h", "stdlib", "malloc", "string.h", "/tmp", "home"):
            assert word not in text


def test_a_budget_of_bytes_chooses_the_widest_tables_that_fit() -> None:
    one = machine()
    sizes = {tables: table_bytes(one, tables) for tables in TYPES}
    for tables in TYPES[1:]:
        made = files(one, "model.h", max_bytes=sizes[tables])
        assert made.facts["tables"] == tables
        assert made.facts["n_bytes"] == sizes[tables] == sum(made.facts["table_bytes"].values())
    with pytest.raises(UnsupportedExportError, match=rf"int8_all tables .* take {sizes['int8_all']}\. .*compress"):
        files(one, "model.h", max_bytes=sizes["int8_all"] - 1)
    with pytest.raises(UnsupportedExportError, match=rf"float64 tables .*tables='int16' takes {sizes['int16']}"):
        files(one, "model.h", tables="float64", max_bytes=sizes["int16"])


@pytest.mark.parametrize("tables", TYPES)
def test_the_tables_that_are_written_have_the_bytes_that_were_counted(tables: str) -> None:
    from machines import random_cases

    width = {
        "float": 4,
        "double": 8,
        "int8_t": 1,
        "uint8_t": 1,
        "int16_t": 2,
        "uint16_t": 2,
        "int32_t": 4,
        "uint32_t": 4,
    }
    for case in random_cases(30, 7):
        text = text_of(case.machine, tables=tables, X=case.X)
        found = re.findall(r"static const (\w+) model_\w+_table\[(\d+)\] MODEL_FLASH = \{([^}]*)\}", text)
        assert all(len(values.split(",")) == int(count) for _, count, values in found)
        assert sum(width[kind] * int(count) for kind, count, _ in found) == table_bytes(case.machine, tables, case.X)


def test_what_is_refused() -> None:
    X = np.zeros((4, 3))
    with pytest.raises(ValueError, match="tables of the C export must be one of"):
        files(machine(), "model.h", tables="int4")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="y of the C export holds the labels of X"):
        files(machine(), "model.h", y=[1])
    with pytest.raises(ValueError, match=r"must be \(n, 3\).*Got \(4, 2\)"):
        files(machine(), "model.h", X=X[:, :2])
    with pytest.raises(ValueError, match=r"finite numbers"):
        files(machine(), "model.h", X=X + np.nan)
    with pytest.raises(ValueError, match=r"a label for each row of X, 4\. Got 3"):
        files(machine(), "model.h", X=X, y=[0, 1, 0])
    with pytest.raises(UnsupportedExportError, match="Pass data as X"):
        files(machine(kernel=Linear()), "model.h", tables="int8")
    huge = LinearHead(np.full((9, 1), 1e300), [0.0])
    with pytest.raises(UnsupportedExportError, match="too large for float32"):
        files(machine(head=huge), "model.h")


def test_what_is_not_a_number_has_no_class(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text(text_of(machine(), "a.h"))
    (tmp_path / "b.h").write_text(text_of(machine(4), "b.h", tables="float64"))
    main = """#include "a.h"
#include "b.h"
int main(void) {
  const float zero = 0, x[3] = {1, zero / zero, 2}, far[3] = {1e30f, 1 / zero, -1e38f};
  const double y[3] = {1, (double)x[1], 2}, remote[3] = {1e300, 1e308, -1e308};
  return a_predict(x) != -1 || b_predict(y) != -1 || a_predict(far) < 0 || b_predict(remote) < 0;
}
"""
    (tmp_path / "main.c").write_text(main)
    flags = [flag for flag in SANITIZED if flag != "-pedantic"]
    build([*flags, "-fno-sanitize=float-divide-by-zero", str(tmp_path / "main.c"), "-o", str(tmp_path / "main")])
    assert subprocess.run([str(tmp_path / "main")], check=False).returncode == 0


@pytest.mark.parametrize("tables", TYPES)
def test_tables_are_read_from_flash_on_avr_boards(tables: str, tmp_path: Path) -> None:
    (tmp_path / "avr").mkdir()
    reads = {"byte": "uint8_t", "word": "uint16_t", "dword": "uint32_t"}
    shim = '#include <stdint.h>\n#define PROGMEM __attribute__((section(".flash")))\n'
    shim += "".join(
        f"#define pgm_read_{name}(a) (*(const {kind} *)(const void *)(a))\n" for name, kind in reads.items()
    )
    shim += "#define pgm_read_float(a) (*(a))\n"
    (tmp_path / "avr" / "pgmspace.h").write_text(shim)
    (tmp_path / "model.h").write_text(text_of(machine(3), tables=tables))
    assert self_test(tmp_path / "model.h", tmp_path, [*C99, "-D__AVR__", f"-I{tmp_path}"]) == 0


def test_coupled_sigmoids_and_a_machine_without_vectors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coupled = machine(calibration=SigmoidCalibration([-1.5], [0.3], coupled=True))
    empty = machine(points=np.empty((0, 3)), head=LinearHead(np.empty((0, 1)), [0.25]))
    X = rng.normal(size=(30, 3))
    for tables in TYPES:
        folder = tmp_path / tables
        folder.mkdir()
        first, second = run([(coupled, X), (empty, X)], folder, CPP, tables=tables)
        expected = coupled._probabilities(first.scores)
        np.testing.assert_allclose(first.probabilities, expected, atol=1e-5)
        np.testing.assert_allclose(second.scores, 0.25)


def test_linear_kernels_are_one_product_per_score() -> None:
    X = np.random.default_rng(1).normal(size=(100, 3))
    for tables in TYPES:
        made = files(machine(4, kernel=Linear()), "model.h", tables=tables, X=X)
        assert made.facts["multiply_adds"] == 4 * 3
        assert made.facts.get("changed", 0.0) <= 0.01


def test_feature_names_are_told() -> None:
    assert "petal length (cm)" in text_of(replace(machine(), feature_names=("petal length (cm)", "b", "c")))


SKETCH = """#include <stddef.h>
struct Port {
  void begin(long) {}
  int available() { return 0; }
  int read() { return 0; }
  float parseFloat() { return 0; }
  void print(const char *) {}
  void println(const char *) {}
  void println(double, int) {}
};
static Port Serial;
#define F(text) text
"""


def test_the_arduino_example_compiles_and_its_header_is_what_it_was(tmp_path: Path) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / "arduino" / "ripley"
    assert self_test(folder / "model.h", tmp_path) == 0
    sketch = SKETCH + (folder / "ripley.ino").read_text(encoding="utf-8") + "\nint main() { setup(); loop(); }\n"
    (tmp_path / "sketch.cpp").write_text(sketch)
    build(
        [
            "g++",
            "-std=c++11",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{folder}",
            str(tmp_path / "sketch.cpp"),
            "-o",
            "/dev/null",
        ]
    )


@pytest.mark.parametrize("tables", TYPES)
@pytest.mark.parametrize("kernel", [Rbf(1.0), Linear(), Polynomial(1.0, 1.0, 3.0), Sigmoid(1e30)], ids=lambda k: k.name)
@pytest.mark.parametrize("scale", [1e-200, 1e-20, 1e5, 1e20, 1e200])
def test_extreme_numbers_are_written_or_refused(tables: str, kernel: Any, scale: float) -> None:
    for size in (1e-100, 1.0, 1e30):
        head = LinearHead(size * np.ones((9, 1)), [size])
        one = machine(kernel=kernel, points=scale * machine().points, head=head)
        try:
            text = text_of(one, tables=tables, X=scale * np.ones((3, 3)))
        except UnsupportedExportError as refusal:
            text = str(refusal)
        assert "cale the data" in text or "#endif" in text
        assert not re.search(r"\b(inf|nan)f?\b", text)
