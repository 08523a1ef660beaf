"""
Calibrated probabilities
========================

`calibrate="sigmoid"` or `"isotonic"` fits probabilities on scores of held-out samples. A reliability diagram shows
whether of the samples with probability 0.8 about 80 % are true cases.
"""

import matplotlib.pyplot as plt
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import slimsvm

X, y = make_classification(3000, n_features=6, n_informative=4, class_sep=0.7, flip_y=0.15, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=800, random_state=0)
svc = SVC().fit(X_train, y_train)

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.plot([0, 1], [0, 1], ":", color="0.4")
for kind in ("sigmoid", "isotonic"):
    small = slimsvm.compress(svc, X_train, y_train, n_vectors=20, method="reduced_set", calibrate=kind, random_state=0)
    share, mean = calibration_curve(y_test, small.predict_proba(X_test)[:, 1], n_bins=8)
    ax.plot(mean, share, "o-", label=kind)
ax.set(xlabel="predicted probability", ylabel="share of true cases")
ax.legend()
