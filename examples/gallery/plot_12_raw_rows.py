"""
From raw rows to an answer
==========================

Imputers, scalers and encoders become part of the model. It reads a dict, and an answer takes microseconds instead of
the milliseconds of a Pipeline.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import slimsvm

rng = np.random.default_rng(0)
table = pd.DataFrame({"age": rng.normal(40, 10, 600), "city": rng.choice(["Bonn", "Rome", "Oslo"], 600)})
table.loc[::25, "age"] = np.nan
label = np.where((table["age"].fillna(40) > 38) ^ (table["city"] == "Rome"), "stays", "leaves")

columns = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["city"])
)
pipeline = make_pipeline(columns, SVC()).fit(table, label)
small = slimsvm.compress(pipeline, table, label, n_vectors=10, method="reduced_set", fuse=True, random_state=0)
print(
    small.predict({"age": None, "city": "Rome"}),
    f"{np.mean(small.predict(table) == pipeline.predict(table)):.1%} the same",
)

# %%
# The time of one answer:


def microseconds(ask, row, repeats=200):
    """The shortest time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        ask(row)
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


times = {
    "Pipeline, DataFrame": microseconds(pipeline.predict, table[:1], 30),
    "slimsvm, DataFrame": microseconds(small.predict, table[:1]),
    "slimsvm, dict": microseconds(small.predict, {"age": 41.0, "city": "Oslo"}),
}
figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(times), list(times.values()))
ax.bar_label(bars, [f"{value:,.0f} µs" for value in times.values()], padding=3)
ax.set(xscale="log", xlabel="microseconds per answer")
ax.margins(x=0.25)
