"""The wires to a model: one file each, behind one narrow interface."""

from isograde.backends.base import Backend, Memory, Reply

__all__ = ["Backend", "Memory", "Reply"]
