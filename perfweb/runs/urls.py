# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the live progress."""

from django.urls import path

from perfweb.runs.views_events import events

urlpatterns = [path("runs/<int:number>/events", events, name="run-events")]
