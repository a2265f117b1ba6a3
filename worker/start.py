"""Where the command ``gasp-worker`` starts: it says what to install where the library was installed alone."""

from __future__ import annotations

_OURS = frozenset({"gasp_core", "migrations", "schemas", "worker"})
_OF_THE_PAGE = frozenset({"itsdangerous", "jinja2", "starlette", "uvicorn"})


def main() -> None:
    """Run the command. Ends with status 2 and one line where one of its packages is missing."""
    try:
        from worker.cli import main as command

        command()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in _OURS:
            raise
        raise SystemExit(_refusal(missing)) from None


def _refusal(missing: str) -> int:
    from gasp_core.terminal import say

    who, extra = ("the review page", "review") if missing in _OF_THE_PAGE else ("the worker", "worker")
    say(f"gasp-worker: {missing} is not installed; {who} needs: pip install 'gasp-audit[{extra}]'", err=True)
    return 2
