# SPDX-License-Identifier: BSD-2-Clause
"""The address of the first page."""

from django.urls import URLPattern, URLResolver, path

from perfweb.dashboard import views

app_name = "dashboard"
urlpatterns: list[URLPattern | URLResolver] = [path("", views.home, name="home")]
