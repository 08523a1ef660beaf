"""The exceptions and warnings of slimsvm that are not Python's own."""


class FormatError(ValueError):
    """A model file that is damaged, hostile, or says what slimsvm cannot mean; the message says where and why."""


class UnsupportedModelError(TypeError):
    """A model that cannot be imported exactly; the message says what stands in the way and what to do."""


class SlowCoreWarning(RuntimeWarning):
    """The compiled core is not there: the NumPy implementation answers, correctly and slowly."""
