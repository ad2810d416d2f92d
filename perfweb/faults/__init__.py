# SPDX-License-Identifier: BSD-2-Clause
"""Faults: exceptions of single items in the loops over many that run unattended."""
