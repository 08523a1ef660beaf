"""The only door to the compiled core.

`available` says whether the core could be built and loaded. Where it could not, every caller has a NumPy path.
"""

from __future__ import annotations

available = False
