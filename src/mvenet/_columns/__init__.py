"""Columns as people have them, turned into numbers: categories, dates, truth values, gaps.

Needs polars. Start with :mod:`mvenet._columns.encoder`; what it has learned, and does with a new
table, is in :mod:`mvenet._columns.encoding`, which needs no scikit-learn.
"""
