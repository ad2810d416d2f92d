# SPDX-License-Identifier: BSD-2-Clause
"""All addresses of the site."""

from django.urls import include, path

urlpatterns = [
    path("", include("perfweb.runs.urls")),
    path("", include("perfweb.reports.urls")),
    path("", include("perfweb.api.urls")),
]
