"""The version, by itself, so that every layer can name it."""

__version__ = "0.1.0.dev0"
