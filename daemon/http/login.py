"""The form that asks for a token, for somebody who opens the page from another machine."""

from __future__ import annotations

import html

# Without styles or scripts: the page's policy lets nothing in before the login.
_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Watchkeeper: log in</title></head>
<body><main><h1>Watchkeeper</h1><p>{words}</p>
<form method="post" action="/login"><p><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button></p></form></main></body></html>
"""


def form(words: str) -> str:
    """The form, with what is to be said."""
    return _FORM.format(words=html.escape(words))
