# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the live progress, and of actions on a run."""

from django.urls import path

from perfweb.runs.pages.control import again, cancel, service
from perfweb.runs.pages.events import events

urlpatterns = [
    path("runs/<int:number>/events", events, name="run-events"),
    path("runs/<int:number>/cancel/", cancel, name="run-cancel"),
    path("runs/<int:number>/again/", again, name="run-again"),
    path("testbeds/<slug:name>/service/", service, name="testbed-service"),
]
