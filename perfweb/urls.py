# SPDX-License-Identifier: BSD-2-Clause
"""All addresses of the site."""

from inspect import unwrap

from django.urls import include, path
from django.views import defaults

handler400 = "perfweb.serving.malformed.bad_request"
# Without their decorator, which parses the body for a CSRF token that the error pages do not have: a malformed body
# would turn 403 and 404 into 500.
handler403, handler404 = unwrap(defaults.permission_denied), unwrap(defaults.page_not_found)
handler500 = "perfweb.serving.unavailable.server_error"
urlpatterns = [
    path("api/", include("perfweb.api.urls")),  # first: one comparison, and programs request it most often
    path("", include("perfweb.accounts.urls")),
    path("", include("perfweb.runs.urls")),
    path("", include("perfweb.dashboard.urls")),
    path("", include("perfweb.reports.urls")),
    path("", include("perfweb.submissions.urls")),
    path("", include("perfweb.tracking.urls")),
    path("", include("perfweb.forges.urls")),
    path("", include("perfweb.manual.urls")),
    path("", include("perfweb.operations.urls")),
]
