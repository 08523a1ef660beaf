"""The exceptions and warnings of slimsvm."""


class FormatError(ValueError):
    """A model file is damaged or not supported; the message says where and why."""


class DataError(ValueError):
    """Data are missing, unreadable, damaged, or do not fit; the message says where, why and what to do."""


class UnsupportedModelError(TypeError):
    """A model cannot be imported exactly; the message says why and what to do."""


class UnsupportedExportError(ValueError):
    """A format cannot represent a machine; the message says why and what to do."""


class SlowCoreWarning(RuntimeWarning):
    """The compiled core could not be loaded: predictions use NumPy, which is correct but slow."""


class UncertainPromiseWarning(UserWarning):
    """The held-out samples are too few to show that a limit on losses is kept: the standard error is above it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped a long computation; `best` is the best result so far, or None if there is none yet."""

    def __init__(self, best: object = None) -> None:
        super().__init__("interrupted; `best` of this exception is the best result so far")
        self.best = best


class PromiseError(ValueError):
    """No machine keeps to the limits given to `compress`; `best` is the nearest estimator, with a `report_`."""

    def __init__(self, message: str, best: object = None) -> None:
        super().__init__(message)
        self.best = best
