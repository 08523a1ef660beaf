"""What the benchmarks share. A script of this folder's parent is run; a module here is imported."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))
