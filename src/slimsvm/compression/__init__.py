"""The public door: a trained model in, a faster one out, as small as a promise allows."""

from slimsvm.compression.door import compress

__all__ = ["compress"]
