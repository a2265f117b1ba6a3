"""The commands ``gasp-worker review serve`` and ``gasp-worker review account``."""

from __future__ import annotations

from typing import Annotated

import typer

from gasp_core.terminal import say
from worker.terminal.database import opened_database


def serve() -> None:
    """Serve the page on which people label, until told to stop (SIGTERM or Ctrl-C).

    The settings GASP_REVIEW_PAGE_… say where, and who says who somebody is.
    """
    from worker.page.serve import serve_page
    from worker.runtime.logs import configure_logs
    from worker.settings.settings import read_page_settings

    settings = read_page_settings()
    configure_logs(settings.log_level)
    with opened_database("review-page", settings.database) as store:
        say(f"the page is at http://{settings.review_page_host}:{settings.review_page_port}/", err=True)
        serve_page(settings, store)


def account(
    name: Annotated[str, typer.Argument(help="The reviewer's name, which their labels will carry.")],
    *,
    lead: Annotated[bool, typer.Option("--lead", help="A lead, who settles what reviewers differ on.")] = False,
) -> None:
    """Ask for a password, and print the account's line for the file of GASP_REVIEW_PAGE_ACCOUNTS."""
    from worker.page.accounts import account_line
    from worker.page.reviewer import Role

    password = typer.prompt("password", hide_input=True, confirmation_prompt=True, err=True)
    try:
        line = account_line(name, Role.LEAD if lead else Role.REVIEWER, password)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error
    say(line)
