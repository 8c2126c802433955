"""The wires to a model: one file each, behind one narrow interface."""

from isograde.backends.base import Backend, Reply

__all__ = ["Backend", "Reply"]
