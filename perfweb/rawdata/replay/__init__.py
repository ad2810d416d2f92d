# SPDX-License-Identifier: BSD-2-Clause
"""Replay bundles, the archives of runs: read with suspicion, analysed again without a database."""
