# SPDX-License-Identifier: BSD-2-Clause
"""Operation of the service: back-ups, health and metrics."""
