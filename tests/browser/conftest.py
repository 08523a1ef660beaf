"""A headless Chromium, and a server of static files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import Any

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Quiet(SimpleHTTPRequestHandler):
    """A handler that logs nothing, and knows the type of modules."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".js": "text/javascript"}

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium with a new profile; without it the tests are skipped, or fail with CI=true."""
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = which("chromium"), which("chromedriver")
    if chromium is None or driver is None:
        text = "Debian's chromium and chromium-driver are not installed"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(text)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    found.set_window_size(1200, 900)
    yield found
    found.quit()


@pytest.fixture(autouse=True)
def no_console_error(browser: Any) -> Iterator[None]:
    """A test fails if the page wrote an error to the console."""
    browser.get_log("browser")
    yield
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


@pytest.fixture
def served() -> Iterator[Callable[[Path], str]]:
    """The address of a server of a folder."""
    servers = []

    def serve(folder: Path) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()
