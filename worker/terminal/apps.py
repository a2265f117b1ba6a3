"""An app that is named on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gasp_core.terminal import visible
from worker.errors import WorkerError

if TYPE_CHECKING:
    from worker.store.interactions import Interactions

# Of an unknown app, so many known ones are named.
NAMED_APPS = 20


def require_known_app(interactions: Interactions, app: str) -> None:
    """Raise WorkerError, with the apps there are, unless something of the app is stored. Raises StoreError, too."""
    apps = interactions.apps()
    if app not in apps:
        named = ", ".join(visible(one) for one in apps[:NAMED_APPS]) or "none yet"
        more = ", …" if len(apps) > NAMED_APPS else ""
        raise WorkerError(f"nothing is stored of the app {visible(app)}; the apps are: {named}{more}")
