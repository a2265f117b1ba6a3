"""What can go wrong in gasp_core.

GaspError
├── ModelError            a model that cannot be used, with what to do about it
│   ├── ModelNotFound     no such model at this name or path, or it cannot be downloaded
│   ├── ModelUnsupported  found, but not a causal language model in safetensors that can be scored
│   └── ModelOutOfMemory  not enough memory for these exchanges; fewer or shorter ones may fit
├── DetectorError         a detector that there is none of, or that cannot do what was asked of it
├── InputError            a file of exchanges that cannot be read, with the line
└── PackageMissing        a package that only some need is not installed, with the extra that has it
"""

from __future__ import annotations


class GaspError(Exception):
    """Base of everything gasp_core raises on purpose."""


class ModelError(GaspError):
    """A model that cannot be used. ``model`` is the name or path that was asked for, ``reason`` why it cannot."""

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"{model}: {reason}")
        self.model = model
        self.reason = reason


class ModelNotFound(ModelError):  # noqa: N818 - reads as the fact it states
    """No model at this name or path."""


class ModelUnsupported(ModelError):  # noqa: N818 - reads as the fact it states
    """The model was found but cannot be used for scoring."""


class ModelOutOfMemory(ModelError):  # noqa: N818 - as above
    """The device has not enough memory for these exchanges. What was kept from earlier ones has been let go."""


class DetectorError(GaspError, ValueError):
    """A detector that there is none of, or that cannot do what was asked of it. ``detector`` is its name."""

    def __init__(self, detector: str, message: str) -> None:
        super().__init__(message)
        self.detector = detector


class InputError(GaspError, ValueError):
    """A file of exchanges that cannot be read. ``line`` counts from 1; 0 means the file as a whole."""

    def __init__(self, path: str, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
        self.path = path
        self.line = line


class PackageMissing(GaspError):  # noqa: N818 - reads as the fact it states
    """A package that only some need is not installed. ``extra`` is that of gasp-audit which brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'gasp-audit[{extra}]'")
        self.package = package
        self.extra = extra
