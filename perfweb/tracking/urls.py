# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of tracked branches and alerts. Mails cite those of alerts for years."""

from django.urls import path
from django.views.generic import RedirectView

from perfweb.tracking import views
from perfweb.tracking.alerts import feeds, watch_pages
from perfweb.tracking.models import AddressKind

app_name = "tracking"
_OLD = {"permanent": True, "http_method_names": ["get", "head"]}
"""The old name of an address, which mails and bookmarks still have."""

urlpatterns = [
    path("tracking/", views.branch_list, name="list"),
    path("tracking/<slug:name>/", views.branch, name="branch"),
    path("tracking/<slug:name>/period/", views.period, name="period"),
    path("tracking/<slug:name>/pause/", views.pause, name="pause"),
    path("alerts/", views.alert_list, name="alerts"),
    path("alerts/feed/", feeds.alerts, name="feed"),
    path("alerts/watch/", watch_pages.watch, name="watch"),
    path("alerts/confirm/<str:token>/", watch_pages.confirm, name="confirm"),
    path("alerts/unsubscribe/<str:token>/", watch_pages.unsubscribe, name="unsubscribe"),
    path("account/mine/address/", watch_pages.address, {"kind": AddressKind.MAIL}, name="address"),
    path("account/mine/webhook/", watch_pages.address, {"kind": AddressKind.WEBHOOK}, name="webhook"),
    path("alerts/<int:number>/feed/", feeds.alert, name="alert-feed"),
    path("alerts/<int:number>/", views.alert, name="alert"),
    path("alerts/<int:number>/update/", views.update_alert, name="update"),
    path("alerts/<int:number>/say/", RedirectView.as_view(pattern_name="tracking:update", **_OLD)),
]
