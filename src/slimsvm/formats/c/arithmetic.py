"""The integer functions of the C export in NumPy, with the same bits as in C."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm.formats.c.integers import EXP2

Integers = NDArray[np.int64]
ONE = 1 << 30  # a kernel value of one


def rounded(v: Integers, n: Any) -> Integers:
    """v / 2^n, rounded to the nearest integer, halves away from zero."""
    n = np.asarray(n, dtype=np.int64)
    return np.asarray(np.sign(v) * ((np.abs(v) + ((np.int64(1) << n) >> 1)) >> n))


def exp2(y: NDArray[np.uint64]) -> Integers:
    """2^-y with 30 fraction bits, for y with 32."""
    low, n = y & np.uint64(0xFFFFFFFF), np.minimum(y >> np.uint64(32), np.uint64(32))
    q = np.full_like(y, EXP2[-1])
    for constant in (*EXP2[-2::-1], 2**32):
        q = np.uint64(constant) - ((q * low) >> np.uint64(32))
    value = (q + (np.uint64(2) << n)) >> (n + np.uint64(2))
    return np.where(n > 30, 0, value.astype(np.int64))


def tanh2(v: Integers) -> Integers:
    """(1 − e)/(1 + e) with e = 2^-|v|, with the sign of v."""
    e = exp2(np.abs(v).astype(np.uint64))
    return np.asarray(np.sign(v) * (((ONE - e) << 30) // (ONE + e)))


def power(v: Integers, degree: int) -> Integers:
    """v^degree for |v| ≤ 1."""
    product = np.full_like(v, ONE)
    while degree:
        product = rounded(product * v, 30) if degree & 1 else product
        v = rounded(v * v, 30)
        degree >>= 1
    return product


def root(square: Integers) -> Integers:
    """Square roots of numbers below 2^62, rounded down; 0 for negative numbers."""
    square = np.maximum(square, 0)
    guess = np.sqrt(square.astype(np.float64)).astype(np.int64)
    guess -= guess * guess > square
    return np.asarray(guess + ((guess + 1) * (guess + 1) <= square))
