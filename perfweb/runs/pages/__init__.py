# SPDX-License-Identifier: BSD-2-Clause
"""Pages and event streams of runs."""
