"""Rows in: JSONL, JSON, CSV, Parquet, DataFrame, Hugging Face Dataset and iterables → items and gold labels.

::

    source ─ sources, files ─▶ record (columns → values) ─ columns ─▶ Item ─┬─▶ Row
                                                        └─ gold ──▶ levels ─┘
"""

from __future__ import annotations

from isograde.datasets.rows import Row, Rows, read_rows

__all__ = ["Row", "Rows", "read_rows"]
