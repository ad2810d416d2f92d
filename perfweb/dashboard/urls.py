# SPDX-License-Identifier: BSD-2-Clause
"""The addresses of the first page and of a user's own."""

from django.urls import URLPattern, URLResolver, path

from perfweb.dashboard import views
from perfweb.dashboard.mine import mine

app_name = "dashboard"
urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("account/mine/", mine, name="mine"),
]
