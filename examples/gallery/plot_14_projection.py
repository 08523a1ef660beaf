"""
A projection that is learned with the vectors
=============================================

With `metric="projection"`, the data are projected to a few dimensions before the kernel, and the projection is trained
together with the vectors. With two dimensions, it can be drawn.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

import slimsvm

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = slimsvm.SparseLargeMarginClassifier(n_vectors=20, metric="projection", n_components=2, random_state=0)
model.fit(X_train, y_train)

# %%
# A principal component analysis does not know the classes; the learned projection does.

machine = model.machine_
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
left.scatter(*PCA(2).fit(X_train).transform(X_test).T, c=y_test, cmap="tab10", s=9)
left.set_title("PCA")
drawn = right.scatter(*machine.input_map.apply(X_test).T, c=y_test, cmap="tab10", s=9)
right.plot(*machine.points.T, "kx", label="vectors")
right.set_title(f"learned projection, {model.score(X_test, y_test):.1%} right")
right.legend()
figure.colorbar(drawn, ticks=range(10), label="digit")
