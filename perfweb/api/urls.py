# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the API, below `api/`."""

from __future__ import annotations

from django.urls import path
from django.views.generic import RedirectView

from perfweb.api import v1

urlpatterns = [
    path("", RedirectView.as_view(url=v1.ROOT)),
    path("v1/", v1.guide, name="api-reference"),
    path("v1/openapi.json", v1.schema, name="api-schema"),
    path("v1/", v1.api.urls),
]
