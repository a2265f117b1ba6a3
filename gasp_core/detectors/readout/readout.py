"""A readout: a linear model of the scorer's states and of what the texts and two passes tell; one file each.

The states after one layer, under the whole context, are taken down to a few numbers by a projection; their means over
a sentence are its readings. The score is the log-odds of being grounded in a logistic model of readings and terms.

The file is safetensors: ``projection`` (D, M), ``offsets`` (M,) and ``weights`` (M,) in float32, and all else as JSON
in its header. Nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gasp_core.detectors.detector import Bounds
from gasp_core.detectors.fused_model import Term
from gasp_core.errors import DetectorError
from gasp_core.identity import ScorerIdentity

if TYPE_CHECKING:  # numpy, which those who only score by something else can spare
    from gasp_core.arrays import Floats

NAME = "readout"
READOUT_SUFFIX = ".safetensors"
# The header's key; raised when the file changes its form.
FORM = "readout-1"
# A readout of a model of 8 billion weights takes 1 MB.
MAX_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """A learned readout.

    ``projection`` (D, M) and ``offsets`` (M,) make readings of the states after ``layer``, counted from 1; ``weights``
    (M,) is what one unit of each adds to the log-odds of being grounded. ``terms`` are named numbers beside them.
    ``scorers`` are whose states it was learned from, ``provenance`` says on what data, when and how well.
    """

    layer: int
    projection: Floats
    offsets: Floats
    weights: Floats
    terms: tuple[Term, ...]
    intercept: float
    scorers: tuple[ScorerIdentity, ...]
    bounds: Bounds
    provenance: Mapping[str, Any]

    def log_odds(self, terms: Sequence[float], readings: Sequence[float]) -> float:
        """The log-odds of being grounded, of a sentence's terms in the order of ``terms`` and its M readings."""
        return (
            self.intercept
            + sum(term.log_odds(value) for term, value in zip(self.terms, terms, strict=True))
            + math.fsum(weight * value for weight, value in zip(self.weights.tolist(), readings, strict=True))
        )

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that change with anything that a score depends on."""
        told = json.dumps([self.layer, [asdict(term) for term in self.terms], self.intercept], sort_keys=True)
        numbers = (array.astype("<f4").tobytes() for array in (self.projection, self.offsets, self.weights))
        return hashlib.sha256(told.encode() + b"".join(numbers)).hexdigest()[:8]

    def save(self, path: Path) -> None:
        """Write it to a file."""
        from safetensors.numpy import save_file

        arrays = {"projection": self.projection, "offsets": self.offsets, "weights": self.weights}
        save_file(
            {name: array.astype("float32") for name, array in arrays.items()}, path, metadata={FORM: self._header()}
        )

    def _header(self) -> str:
        return json.dumps(
            {
                "layer": self.layer,
                "terms": [asdict(term) for term in self.terms],
                "intercept": self.intercept,
                "scorers": [asdict(scorer) for scorer in self.scorers],
                "bounds": asdict(self.bounds),
                "provenance": dict(self.provenance),
            }
        )


def load_readout(path: Path) -> Readout:
    """Read what ``save`` wrote. Raises DetectorError, which says what is wrong with the file."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise DetectorError(NAME, f"{path}: no such file; `gasp train` writes one")
    if path.stat().st_size > MAX_BYTES:
        raise DetectorError(NAME, f"{path}: too large for a readout")
    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {})[FORM])
            arrays = {name: file.get_tensor(name) for name in ("projection", "offsets", "weights")}
        return _readout(header, arrays)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DetectorError(
            NAME, f"{path}: is no readout that this version reads ({type(error).__name__}); `gasp train` writes one"
        ) from error


def _readout(header: dict[str, Any], arrays: dict[str, Floats]) -> Readout:
    """Raises KeyError, TypeError or ValueError if it is none."""
    found = Readout(
        layer=int(header["layer"]),
        projection=arrays["projection"],
        offsets=arrays["offsets"],
        weights=arrays["weights"],
        terms=tuple(Term(**term) for term in header["terms"]),
        intercept=float(header["intercept"]),
        scorers=tuple(ScorerIdentity(**scorer) for scorer in header["scorers"]),
        bounds=Bounds(**header["bounds"]),
        provenance=header["provenance"],
    )
    readings = found.weights.shape
    if len(readings) != 1 or found.offsets.shape != readings or found.projection.shape[1:] != readings:
        raise ValueError("shapes that do not fit each other")
    numbers = (float(abs(array).max(initial=0.0)) for array in arrays.values())
    if not all(map(math.isfinite, (*numbers, found.intercept, *(term.coefficient for term in found.terms)))):
        raise ValueError("numbers that are not finite")
    return found
