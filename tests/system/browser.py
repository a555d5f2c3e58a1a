"""A real Chromium without a window, for tests that look at a page: found, or installed for root, or the
tests are skipped."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_INSTALL = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium")
_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
_ROOT = 0


def find_chromium():
    """Its path. NO_INSTALL=1 forbids to install it."""
    found = _found()
    if (
        found is None
        and os.geteuid() == _ROOT
        and shutil.which("apt-get")
        and os.environ.get("NO_INSTALL", "") in ("", "0")
    ):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (("apt-get", "update", "-qq"), _INSTALL):
            subprocess.run(command, env=environment, capture_output=True, check=False)
        found = _found()
    if found is None:
        pytest.skip(
            f"Chromium is needed and was not found; install it by: sudo {' '.join(_INSTALL)}".replace(" -qq", "")
        )
    return found


def _found():
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def browsing(folder):
    """Pages are opened in it by `new_page`."""
    from playwright.sync_api import sync_playwright

    chromium = find_chromium()
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=chromium, headless=True, args=_FLAGS
        )
        yield context
        context.close()
