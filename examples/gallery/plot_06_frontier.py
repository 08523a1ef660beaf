"""
The whole trade-off, beside boosted trees
=========================================

`frontier` compresses a model to several sizes by several methods, judges all of them on held-out data, and compares
them with Nyström features, an SVM on part of the data and boosted trees.
"""

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import slimsvm

X, y = make_classification(1600, n_features=6, n_informative=5, n_redundant=0, class_sep=0.9, random_state=1)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, random_state=0)
svc = SVC(C=5).fit(X_train, y_train)

curve = slimsvm.frontier(
    svc,
    X_train,
    y_train,
    validation=(X_test, y_test),
    sizes=[5, 10, 20, 50],
    methods=["sparse_margin", "reduced_set", "selection"],
    random_state=0,
)
print(curve)

# %%
# The golden band is the Pareto front: no other model is both cheaper and better.

curve.plot(costs=("us_batch", "vectors"))
