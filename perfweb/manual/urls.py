# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the documentation."""

from django.urls import path

from perfweb.manual import views

app_name = "manual"
urlpatterns = [
    path("docs/", views.contents, name="contents"),
    path("docs/<path:document>/", views.document, name="document"),
]
