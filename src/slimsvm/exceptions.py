"""The exceptions and warnings of slimsvm that are not Python's own."""


class FormatError(ValueError):
    """A model file that is damaged, hostile, or says what slimsvm cannot mean; the message says where and why."""


class UnsupportedModelError(TypeError):
    """A model that cannot be imported exactly; the message says what stands in the way and what to do."""


class UnsupportedExportError(ValueError):
    """A machine that a format cannot hold; the message says what stands in the way and what to do."""


class SlowCoreWarning(RuntimeWarning):
    """The compiled core is not there: the NumPy implementation answers, correctly and slowly."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during long work; `best` is the best result so far, or None where there was none yet."""

    def __init__(self, best: object = None) -> None:
        super().__init__("interrupted; `best` of this exception is the best result so far")
        self.best = best


class PromiseError(ValueError):
    """A promise that no machine keeps; `best` is the nearest possible estimator, with a `report_`."""

    def __init__(self, message: str, best: object = None) -> None:
        super().__init__(message)
        self.best = best
