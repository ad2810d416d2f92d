# SPDX-License-Identifier: BSD-2-Clause
"""ASGI layers and middleware that limit, refuse and answer requests."""
