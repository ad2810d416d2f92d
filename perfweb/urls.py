# SPDX-License-Identifier: BSD-2-Clause
"""All addresses of the site."""

from django.urls import include, path

handler500 = "perfweb.unavailable.server_error"
urlpatterns = [
    path("", include("perfweb.accounts.urls")),
    path("", include("perfweb.runs.urls")),
    path("", include("perfweb.reports.urls")),
    path("", include("perfweb.submissions.urls")),
    path("", include("perfweb.tracking.urls")),
    path("", include("perfweb.forges.urls")),
    path("", include("perfweb.api.urls")),
    path("", include("perfweb.operations.urls")),
]
