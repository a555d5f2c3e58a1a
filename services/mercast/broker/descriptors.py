"""Notices when there are no file descriptors left: the event loop then turns new connections away without a word."""

import asyncio
import errno
import os
import resource

import structlog

log = structlog.get_logger()

_LOOK = 1.0
"""Seconds between two looks."""

_CALM = 5
"""Looks that find some before all is well again: while many come and go there are some now and then."""


async def watch() -> None:
    """Tell when they run out, once, and when there are enough again."""
    found = _CALM
    while True:
        await asyncio.sleep(_LOOK)
        before, found = found, min(found + 1, _CALM) if _is_one_left() else 0
        if before == _CALM and found == 0:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            log.warning(
                "no file descriptors left: new connections are turned away, those that are here stay; "
                "raise the limit (ulimit -n) or lower max_clients",
                limit=limit,
            )
        elif before < found == _CALM:
            log.info("there are file descriptors again")


def _is_one_left() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
