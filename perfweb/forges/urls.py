# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of webhooks."""

from django.urls import path

from perfweb.forges import webhooks

app_name = "forges"
urlpatterns = [path("forges/<slug:name>/webhook", webhooks.webhook, name="webhook")]
