"""Serves the page over HTTP until it is told to stop."""

from __future__ import annotations

import secrets
import signal
from ipaddress import ip_network

import uvicorn

from worker.errors import SettingsError
from worker.page.accounts import Accounts, read_accounts
from worker.page.application import review_application
from worker.page.guidelines import read_guidelines
from worker.page.parts import Parts
from worker.page.reviewer import Identity, ProxyIdentity
from worker.settings.channels import is_loopback
from worker.settings.page import PageChoice
from worker.store.store import Store

_GRACE_S = 10


def serve_page(settings: PageChoice, store: Store) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises SettingsError for what cannot be served."""
    identity = identity_of(settings)
    application = review_application(
        parts_of_store(store, identity, settings),
        secret=settings.session_secret or secrets.token_urlsafe(32),
        # A proxy speaks https to browsers. The page itself speaks http, which is for this machine alone.
        is_secure=not (isinstance(identity, Accounts) and is_loopback(settings.review_page_host)),
        session_s=int(settings.review_page_session_s),
    )
    config = uvicorn.Config(
        application,
        host=settings.review_page_host,
        port=settings.review_page_port,
        # Headers that name another client are for the identity alone to believe.
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        limit_concurrency=200,
        timeout_graceful_shutdown=_GRACE_S,
    )
    _end_in_order()
    uvicorn.Server(config).run()


def _end_in_order() -> None:
    """Let the signals that end the server end nothing else: it raises them again when it has ended."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)


def parts_of_store(store: Store, identity: Identity, settings: PageChoice) -> Parts:
    """What the application is made of."""
    return Parts(
        queue=store.review_queue,
        disputes=store.disputes,
        tasks=store.review_tasks,
        labels=store.labels,
        answers=store.stored_answers,
        votes=store.votes,
        identity=identity,
        guidelines=read_guidelines(settings.review_page_guidelines),
        lease_s=settings.review_page_lease_s,
        skip_s=settings.review_page_skip_s,
    )


def identity_of(settings: PageChoice) -> Identity:
    """Who says who somebody is. Raises SettingsError unless exactly one of the two is set."""
    if bool(settings.review_page_proxy_header) == bool(settings.review_page_accounts):
        raise SettingsError("set GASP_REVIEW_PAGE_PROXY_HEADER or GASP_REVIEW_PAGE_ACCOUNTS, and not both")
    if settings.review_page_accounts:
        return read_accounts(settings.review_page_accounts)
    trusted = [ip_network(one) for one in settings.trusted_proxies]
    if not trusted:
        raise SettingsError("GASP_REVIEW_PAGE_TRUSTED_PROXIES: name the addresses from which the header is believed")
    return ProxyIdentity(settings.review_page_proxy_header, trusted, settings.leads)
