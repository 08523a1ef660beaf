"""
Learned scales: which features matter
=====================================

With `metric="diagonal"`, a scale per feature is trained together with the vectors. Features that do not matter get
small scales, and the model needs fewer vectors.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

import slimsvm

X, y = make_classification(
    900, n_features=12, n_informative=3, n_redundant=0, n_clusters_per_class=2, shuffle=False, random_state=3
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

fixed = slimsvm.SparseLargeMarginClassifier(n_vectors=6, random_state=0).fit(X_train, y_train)
learned = slimsvm.SparseLargeMarginClassifier(n_vectors=6, metric="diagonal", random_state=0).fit(X_train, y_train)
print(f"six vectors: {fixed.score(X_test, y_test):.1%} with equal scales, {learned.score(X_test, y_test):.1%} learned")

# %%
# The first three features are the informative ones.

figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
slimsvm.plots.plot_metric(learned, ax=ax)
