# SPDX-License-Identifier: BSD-2-Clause
"""Outgoing comments, mails and webhooks, retried until delivered."""
