# SPDX-License-Identifier: BSD-2-Clause
"""Addresses for machines: health and metrics."""

from django.urls import path

from perfweb.operations import views

app_name = "operations"
urlpatterns = [
    path("health/", views.health, name="health"),
    path("metrics", views.numbers, name="metrics"),
]
