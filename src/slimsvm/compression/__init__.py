"""`compress`: a trained model in, a smaller and faster one out."""

from slimsvm.compression.api import compress

__all__ = ["compress"]
