# SPDX-License-Identifier: BSD-2-Clause
"""Levels of a series, selected together with a model of its noise."""
