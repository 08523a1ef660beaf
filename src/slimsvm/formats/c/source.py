"""The C functions that a machine needs, in the order in which C needs them."""

from __future__ import annotations

from string import Template
from typing import Any

from slimsvm.answers import Classes, Inlier
from slimsvm.calibration import LEAST_PAIR_PROBABILITY, Calibration, Isotonic, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c import integers, loops, maps, probabilities, reals
from slimsvm.formats.c.fixed import DECISION_BITS, WIDE, Fixed
from slimsvm.formats.c.quantisation import MOST_CLASSES
from slimsvm.heads import MirrorHead, StagedHead
from slimsvm.tables import Form, Table, TableType


class Source:
    """Collects the C text of one machine; with `fixed`, in integers."""

    def __init__(self, form: Form, kind: TableType, tables: dict[str, Table], fixed: Fixed | None) -> None:
        self.form, self.kind, self.tables, self.fixed = form, kind, tables, fixed
        self.machine, self.kernel, self.head = form.machine, form.machine.kernel, form.head
        self.numbers: Any = reals if fixed is None else integers

    def functions(self) -> str:
        """The C text of all functions, in order."""
        pieces = [*self._arithmetic(), *self._map(), *self._kernel(), *self._scores(), *self._answer()]
        return "\n".join(piece.strip("\n") + "\n" for piece in pieces)

    def constants(self) -> dict[str, str]:
        """The numbers in the C text, by the names of their macros."""
        head = self.head
        found = {
            "N_FEATURES": str(self.machine.n_features),
            "N_COORDINATES": str(self.form.n_coordinates),
            "N_POINTS": str(self.form.n_points),
            "N_SCORES": str(head.n_scores),
        }
        if self.form.skips:
            found["N_RUNS"] = str(self.tables["skips"].values.size)
        if isinstance(self.machine.answer, Classes):
            found["N_CLASSES"] = str(self.machine.answer.n_classes)
        if isinstance(head, MirrorHead):
            found["N_SITES"] = str(head.n_inputs)
        if isinstance(head, StagedHead):
            found["N_STAGES"] = str(head.n_stages)
        found |= self._kernel_constants() if self.fixed is None else self._fixed_constants(self.fixed.constants)
        if head.gives_pairs and "order" not in self.tables:
            found["ORDER(i)"] = "(i)"
        return found | self._calibration_constants()

    def _kernel_constants(self) -> dict[str, str]:
        if self.form.presummed or self.kernel.name == "linear":
            return {}
        found = {"GAMMA(j)": "M_GAMMAS(j)" if self.form.gammas is not None else f"`{self.kernel.gamma!r}`"}
        if self.kernel.geometry == "dot":
            found["COEF0"] = f"`{self.kernel.coef0!r}`"
        if self.kernel.name == "poly":
            found["DEGREE"] = str(int(self.kernel.degree))
        return found

    def _fixed_constants(self, constants: dict[str, int]) -> dict[str, str]:
        wanted = ["range", "score_bits"]
        wanted += ["weight", "weight_shift"] if self.form.presummed else ["gamma_shift", "sum_shift"]
        found = {name.upper(): str(constants[name]) for name in wanted}
        if not self.form.presummed:
            found["GAMMA(j)"] = "M_GAMMAS(j)" if self.form.gammas is not None else str(constants["gamma"])
            if self.kernel.geometry == "dot":
                found["COEF0"] = f"INT64_C({constants['coef0']})"
            if self.kernel.name in ("poly", "linear"):
                found["DEGREE"] = str(int(self.kernel.degree))
        if "input_bits" not in self.tables:
            assert self.fixed is not None
            found["INPUT_BITS(i)"] = str(int(self.fixed.input_bits[0]))
        return found

    def _calibration_constants(self) -> dict[str, str]:
        calibration = self.machine.calibration
        found: dict[str, str] = {}
        if isinstance(calibration, Softmax):
            slope = f"`{calibration.slope!r}`" if self.fixed is None else str(self.fixed.constants["slope"])
            found |= {"SLOPES(c)": slope, "LIFTS(c)": "0"}
        if self.fixed is not None and calibration is not None and not isinstance(calibration, Isotonic):
            found["SLOPE_SHIFT"] = str(self.fixed.constants["slope_shift"])
        if self._couples:
            k = self.machine.classes.size if isinstance(calibration, PairwiseSigmoid) else 2
            tolerance = self._weight(0.005 / k)
            found |= {"N_COUPLED": str(k), "N_ROUNDS": str(max(100, k)), "TOLERANCE": tolerance}
        return found

    @property
    def _couples(self) -> bool:
        calibration = self.machine.calibration
        if isinstance(calibration, PairwiseSigmoid):
            return self.machine.classes.size > 2
        return isinstance(calibration, Sigmoid) and calibration.coupled

    def _arithmetic(self) -> list[str]:
        name, mirror, calibration = self.kernel.name, self.head.reads_distances, self.machine.calibration
        radial = self.kernel.geometry != "dot"
        probable = calibration is not None and not isinstance(calibration, Isotonic)
        if self.fixed is not None:
            needs_exp = radial or name == "sigmoid" or probable
            return [integers.ROUND] + ([integers.EXP] if needs_exp else [])
        pieces = [reals.exponential(self.kind)] if radial or name == "sigmoid" or probable else []
        pieces += [reals.shortfall(self.kind)] if name == "sigmoid" or (radial and mirror) else []
        pieces += [reals.TANH] if name == "sigmoid" else []
        pieces += [reals.POWER] if name == "poly" else []
        return pieces + ([reals.square_root(self.kind)] if mirror else [])

    def _map(self) -> list[str]:
        input_map = self.form.input_map
        if input_map is None:
            return [] if self.fixed is None else [integers.NO_MAP]
        offset = "map_offset" in self.tables
        text = maps.map_function(
            input_map.is_diagonal,
            self.fixed is not None,
            self.form.skips,
            centred="(x[i] - M_MAP_SHIFT($k))" if "map_shift" in self.tables else "x[i]",
            lifted=" + M_MAP_OFFSET($k)" if offset else "",
            start="M_MAP_OFFSET(f)" if offset else "0",
            sum="int64_t" if self.fixed is None or self.fixed.map_bound() > WIDE else "int32_t",
        )
        return [text] + ([maps.PLACE] if self.form.skips and "input_bits" in self.tables else [])

    def _kernel(self) -> list[str]:
        geometry, step = self.kernel.geometry, 1 if self.fixed is None else self.fixed.constants["point_step"]
        if self.fixed is None:
            t = z = "m_real"
            value = (reals.SHORTFALLS if self.head.reads_distances else {}).get(self.kernel.name)
            value = value or reals.PROFILES[self.kernel.name]
        else:
            t = "int64_t" if self.form.presummed else "int32_t" if geometry == "dot" else "uint32_t"
            z, value = "int32_t", "m_profile(t, j)"
        text = loops.DENSE
        if "columns" in self.tables:
            text = loops.SPARSE["dot" if geometry == "dot" else "distance"]
        words = {
            "t": t,
            "z": z,
            "what": loops.WHAT[geometry],
            "name": "quantity",
            "point": "M_POINTS",
            "step": f" * {step}" if step != 1 else "",
            "term": self.numbers.TERMS[geometry],
            "value": value,
        }
        pieces = [Template(text).substitute(words)]
        if self.form.presummed:
            return pieces
        pieces += [integers.PROFILES[self.kernel.name]] if self.fixed is not None else []
        pieces.append(Template(loops.KERNEL).substitute(words))
        if self.head.reads_distances:
            pieces += [Template(loops.OWN).substitute(words)] if geometry == "dot" else []
            pieces += self._distance()
        return pieces

    def _distance(self) -> list[str]:
        dot = self.kernel.geometry == "dot"
        if self.fixed is None:
            square = "own - 2 * M_SCALE(i) * k + M_SQUARES(i)" if dot else "M_SQUARES(i) + 2 * M_SCALE(i) * k"
            return [Template(reals.DISTANCE).substitute(square=square)]
        shift = self.fixed.constants["own_shift"]
        square = f"own * (one >> {shift}) + M_SCALE(i) * (int64_t)k" if dot else "M_SCALE(i) * (one - k)"
        return [integers.SQRT, Template(integers.DISTANCE).substitute(square=f"M_SQUARES(i) * one + {square}")]

    def _scores(self) -> list[str]:
        head = self.head
        layout = "presummed" if self.form.presummed else head.name if head.name in loops.SCORES else "linear"
        mapped = self.machine.input_map is not None or self.fixed is not None
        several = isinstance(head, StagedHead) and head.lower is None
        words = {
            "mapped": "m_coordinate u[M_N_COORDINATES];\n  m_map(x, u);" if mapped else "const m_coordinate *u = x;",
            "own": f"const m_value own = {'m_own(u)' if self.kernel.geometry == 'dot' else '0'};",
            "counted": "scores" if self.form.presummed else "kernel values computed",
            "sure": loops.SURE["several" if several else "two"] if "upper" in self.tables else "",
        }
        pieces = [loops.PAIR] if head.gives_pairs else []
        pieces += [loops.LEAD] if several and "upper" in self.tables else []
        finish = integers.PRESUMMED_FINISH if self.form.presummed and self.fixed is not None else self.numbers.FINISH
        return [*pieces, finish, Template(loops.SCORES[layout]).substitute(words)]

    def _answer(self) -> list[str]:
        answer, calibration = self.machine.answer, self.machine.calibration
        if not isinstance(answer, Classes):
            return self._predict("inlier" if isinstance(answer, Inlier) else "value")
        pieces = [*self._decision(answer), self._class(answer)]
        if calibration is not None:
            pieces += self._probabilities(calibration)
        return pieces + self._predict("probable" if calibration is not None and calibration.decides else "class")

    def _predict(self, way: str) -> list[str]:
        if way == "value" and self.head.n_scores > 1:
            return []
        words = {
            "unknown": "; -1 if x contains a NaN" if self.fixed is None else "",
            "scaled": "" if self.fixed is None else "; m_real converts it to a real number",
        }
        return [Template(loops.PREDICT[way]).substitute(words)]

    def _decision(self, answer: Classes) -> list[str]:
        """scikit-learn's decision per class, for a machine with scores of pairs."""
        if not self.head.gives_pairs or answer.n_classes == 2 or answer.shape == "ovo":
            return []
        if self.fixed is not None and answer.n_classes > MOST_CLASSES:
            raise UnsupportedExportError(
                f"Decisions in fixed point are limited to {MOST_CLASSES} classes. Use float32 tables."
            )
        vote = "" if self.fixed is None else f" * {2**DECISION_BITS}"
        squeeze = self.numbers.SQUEEZE
        if self.fixed is not None:
            squeeze = Template(squeeze).substitute(one=max(1, round(2.0 ** self.fixed.constants["score_bits"])))
        return [squeeze, Template(loops.DECISION).substitute(vote=vote)]

    def _class(self, answer: Classes) -> str:
        if self.head.gives_pairs:
            by_decision = answer.break_ties and answer.n_classes > 2
            words = {"check": "if (score != score) return -1;" if self.fixed is None else ""}
            return Template(loops.CLASS["decision" if by_decision else "votes"]).substitute(words)
        if answer.n_classes > 2:
            return loops.CLASS["largest"]
        second = answer.order[1] == 1  # whether a score of zero means the second class
        return Template(loops.CLASS["sign"]).substitute(above=">=" if second else ">", below="<" if second else "<=")

    def _probabilities(self, calibration: Calibration) -> list[str]:
        by_votes = self.head.gives_pairs and not calibration.reads_pairs
        one = self.head.n_scores == 1
        local = ["const m_score *f = scores;"] if not by_votes else ["m_score f[M_N_CLASSES];"]
        after = ["m_decision(scores, f);"] if by_votes else []
        if isinstance(calibration, PairwiseSigmoid):
            body = "pair" if one else "pairs"
            both = "m_weight r[M_N_CLASSES][M_N_CLASSES], coupled[M_N_CLASSES];"
            local += ["m_fraction first;"] if one else [both, "size_t c, j;"]
            probability = ""
        else:
            body = "one" if one else "softmax" if isinstance(calibration, Softmax) else "several"
            local += [] if one else ["size_t c;"]
            local += ["m_fraction most;"] if body == "softmax" else []
            after += ["most = m_exponent(f[0], 0);"] if body == "softmax" else []
            probability = self._probability(calibration).replace("(C)", "(f[0], 0)" if one else "(f[c], c)")
        text = Template(probabilities.BODIES[body]).substitute(probability=probability)
        words = {"locals": "\n  ".join(local), "body": "\n  ".join([*after, text])}
        return [*self._calibration_pieces(calibration, body), Template(probabilities.PROBABILITIES).substitute(words)]

    @staticmethod
    def _probability(calibration: Calibration) -> str:
        """The C expression of a probability; `(C)` stands for the score and its number."""
        if isinstance(calibration, Isotonic):
            return "m_level(C)"
        if isinstance(calibration, Softmax):
            return "m_expit(m_exponent(C))"
        coupled = isinstance(calibration, Sigmoid) and calibration.coupled
        return "m_couple_two(m_expit(m_exponent(C)))" if coupled else "m_expit(-m_exponent(C))"

    def _calibration_pieces(self, calibration: Calibration, body: str) -> list[str]:
        pieces = [self.numbers.UNITS, self.numbers.FRACTIONS]
        if isinstance(calibration, Isotonic):
            pieces = [self.numbers.UNITS] + ([] if body == "one" else [self.numbers.FRACTIONS_ONLY])
            pieces += [self.numbers.BETWEEN, probabilities.INTERPOLATE]
        else:
            pieces += [self._exponent()] + ([] if body == "softmax" else [probabilities.EXPIT])
        pieces += [probabilities.SCALED] if body in ("several", "softmax") else []
        pieces += [probabilities.CLIPPED] if body == "pair" else []
        if self._couples:
            couple = Template(probabilities.COUPLE).substitute(least=self._weight(LEAST_PAIR_PROBABILITY))
            pieces += [self.numbers.WEIGHTS, couple]
        return pieces + ([probabilities.COUPLE_TWO] if isinstance(calibration, Sigmoid) and self._couples else [])

    def _weight(self, value: float) -> str:
        """The C text of a constant used in coupling."""
        return f"`{value!r}`" if self.fixed is None else repr(value)

    def _exponent(self) -> str:
        if self.fixed is None:
            return reals.EXPONENT
        step = self.fixed.constants.get("lift_step", 1)
        return Template(integers.EXPONENT).substitute(step=f" * INT64_C({step})" if step != 1 else "")
