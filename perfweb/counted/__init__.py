# SPDX-License-Identifier: BSD-2-Clause
"""Comparisons of counted kernels by function (docs/explanation/counted.md), on the command line and on pages.

- loads: the names of loads and their units.
- costs: what a boot costs under a load, by function, and the document that carries it.
- comparison: the functions whose costs differ, and a verdict for each load.
- rows: a comparison as the texts of the template counted/comparison.html.

Pure Python without Django, because the command line has no settings of a service.
"""
