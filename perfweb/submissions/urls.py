# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of submissions. Mails cite them for years."""

from django.urls import path

from perfweb.submissions import views

app_name = "submissions"
urlpatterns = [
    path("submissions/", views.submission_list, name="list"),
    path("submissions/new/", views.submit, name="new"),
    path("submissions/<int:number>/", views.submission, name="one"),
    path("submissions/<int:number>/patch.mbox", views.patch, name="patch"),
    path("submissions/<int:number>/actions/", views.actions, name="actions"),
    path("submissions/<int:number>/approve/", views.approve, name="approve"),
    path("submissions/<int:number>/refuse/", views.refuse, name="refuse"),
    path("submissions/<int:number>/cancel/", views.cancel, name="cancel"),
    path("submissions/<int:number>/rerun/", views.rerun, name="rerun"),
]
