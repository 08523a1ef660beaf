"""Pictures of machines, as scikit-learn has them: a Display holds the data of a picture, and `plot` draws it.

They read the record only. matplotlib is loaded when something is drawn, by `backend.py` alone.
"""
