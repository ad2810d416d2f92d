# SPDX-License-Identifier: BSD-2-Clause
"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine must not fail a test: Hypothesis by default allows 200 ms for an example, and so much for finding some.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("untimed")
