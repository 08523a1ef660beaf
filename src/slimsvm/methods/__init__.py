"""Settings of the methods that `compress` can use, and `WidthSearchCV`; the trainers are names of slimsvm itself."""

from slimsvm.methods.growing.width_search import WidthSearchCV
from slimsvm.methods.settings import Growing, MirrorPoints, ReducedSet, Selection, SparseMargin

__all__ = ["Growing", "MirrorPoints", "ReducedSet", "Selection", "SparseMargin", "WidthSearchCV"]
