"""A calibrated graded-rubric judge."""

__version__ = "0.1.0.dev0"
