# SPDX-License-Identifier: BSD-2-Clause
"""Figures: graphs, axes and badges, as SVG and for Plotly."""
