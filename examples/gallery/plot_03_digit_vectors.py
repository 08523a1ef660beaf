"""
Digits as vectors
=================

The vectors of a compressed model need not be samples: each is placed where it helps most. For images they can be
looked at.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slimsvm

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = slimsvm.SparseLargeMarginClassifier(n_vectors=20, gamma=0.1, C=10, max_iter=60, random_state=0)
model.fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} of the test digits are right")

# %%
# Each image is a vector, with the class that it supports and its coefficient.

slimsvm.plots.plot_vectors(model, order="class")
