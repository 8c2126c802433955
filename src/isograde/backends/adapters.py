"""Low-rank adapters that ship for the embedded model: which rubric each was trained for, on which weights."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from isograde.rubric import shipped_path

__all__ = ["Adapter", "shipped_adapter"]


class Adapter(BaseModel):
    """What the file beside an adapter says of it.

    Attributes
    ----------
    file : str
        Name of the GGUF file in the same folder.
    sha256 : str
        Of that file; its first 16 digits stand on grades.
    weights : str
        Fingerprint of the weights that it belongs to.
    rubric : str
        Fingerprint of the rubric that it was trained for.
    prompt : str
        Fingerprint of the prompt's shape that it was trained with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    sha256: str
    weights: str
    rubric: str
    prompt: str

    @property
    def path(self) -> Path:
        """Where the GGUF file lies."""
        return _folder() / self.file

    @property
    def fingerprint(self) -> str:
        """16 hex digits, as they stand on grades."""
        return self.sha256[:16]


def _folder() -> Path:
    return shipped_path("calibration", "embedded")


def shipped_adapter(weights: str) -> Adapter | None:
    """Find the adapter that belongs to a model's weights.

    Parameters
    ----------
    weights : str
        Their fingerprint.

    Returns
    -------
    Adapter or None

    Examples
    --------
    >>> shipped_adapter("of no model that ships") is None
    True
    """
    described = _folder() / "adapter.json"
    if not described.is_file():
        return None
    adapter = Adapter.model_validate_json(described.read_text(encoding="utf-8"))
    return adapter if adapter.weights == weights else None
