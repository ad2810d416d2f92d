# SPDX-License-Identifier: BSD-2-Clause
"""Statistics of measured samples: summaries, Student's t as ministat does it, and the verdict in words.

Pure Python and NumPy/SciPy, without Django, runs or pages, so that any user can recompute a verdict from downloaded
samples. docs/explanation/statistics.md explains the formulas and their assumptions.
"""
