# SPDX-License-Identifier: BSD-2-Clause
"""Addresses of the pages of accounts."""

from django.urls import path

from perfweb.accounts import views, views_oauth
from perfweb.accounts.guards import acts
from perfweb.accounts.permissions import Action

app_name = "accounts"
urlpatterns = [
    path("account/", views.account, name="account"),
    path("account/sign-in/", acts(Action.SIGN_IN)(views.SignIn.as_view()), name="sign-in"),
    path("account/sign-in/<slug:key>/", views_oauth.sign_in, name="sign-in-oauth"),
    path("account/sign-in/<slug:key>/back/", views_oauth.callback, name="oauth-callback"),
    path("account/link/<slug:key>/", views_oauth.link, name="link"),
    path("account/unlink/<int:key>/", views_oauth.unlink, name="unlink"),
    path("account/sign-out/", acts(Action.SIGN_OUT)(views.SignOut.as_view()), name="sign-out"),
    path("account/password/", acts(Action.CHANGE_PASSWORD)(views.PasswordChange.as_view()), name="password"),
    path(
        "account/password/<uidb64>/<token>/",
        acts(Action.SET_PASSWORD)(views.PasswordSet.as_view()),
        name="set-password",
    ),
    path("account/tokens/", views.make_token, name="make-token"),
    path("account/tokens/<int:key>/revoke/", views.revoke_token, name="revoke-token"),
    path("account/log/", views.log, name="log"),
]
