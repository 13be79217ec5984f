"""Starts Watchkeeper as a Home Assistant add-on: options and broker as settings, then the daemon in its place.

Home Assistant writes the options to /data/options.json and answers questions about the broker at http://supervisor.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OPTIONS = Path("/data/options.json")
CONFIG = Path("/data/watchkeeper.toml")
SUPERVISOR = "http://supervisor/services/mqtt"


def broker(token: str) -> dict[str, Any]:
    """Host, port, ssl, username and password of the broker that Home Assistant uses."""
    request = urllib.request.Request(SUPERVISOR, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310
        found: dict[str, Any] = json.load(reply)["data"]
    return found


def settings(options: Mapping[str, Any], mqtt: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """The configuration file, and the environment with what is secret."""
    url = f"{'mqtts' if mqtt.get('ssl') else 'mqtt'}://{mqtt['host']}:{mqtt['port']}"
    lines = [
        "[broker]", f"url = {json.dumps(url)}", f"username = {json.dumps(mqtt.get('username') or '')}", "",
        "[sinks]", 'state_dir = "/data/state"', "terminal = false", "",
        "[home_assistant]", "enabled = true", "",
        "[http]", 'host = "0.0.0.0"',
    ]  # fmt: skip
    env = {"WATCHKEEPER_BROKER__PASSWORD": str(mqtt.get("password") or "")}
    if options.get("token"):
        lines += ["", "[[http.tokens]]", 'name = "home"', 'role = "operate"', 'token_env = "HOME_TOKEN"']
        env["HOME_TOKEN"] = str(options["token"])
    if options.get("receiver"):
        lines += ["", "[[sources]]", 'type = "beast"', f"url = {json.dumps(options['receiver'])}"]
    return "\n".join(lines) + "\n", env


def main() -> None:
    """Write the file and become the daemon."""
    text, env = settings(json.loads(OPTIONS.read_text()), broker(os.environ["SUPERVISOR_TOKEN"]))
    CONFIG.write_text(text)
    os.execvpe("watchkeeper", ["watchkeeper", "run", "-c", str(CONFIG)], {**os.environ, **env})  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
