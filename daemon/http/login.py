"""The form that asks for a token, for somebody who opens the page from another machine."""

from __future__ import annotations

import base64
import hashlib
import html

# Nothing but this form is served before the login, so its style is in it, and named in its policy by its digest.
_STYLE = """
:root {
  color-scheme: light dark;
  --ground: #eef2f6; --card: #fff; --text: #14202e; --muted: #4a5a6d; --line: #7c8b9c; --accent: #00696e; --on: #fff;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0b131d; --card: #111c29; --text: #e9eff6; --muted: #a5b3c4; --line: #5d7088; --accent: #5ad1c8;
    --on: #06201f;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 16px;
  background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif;
}
main { width: min(400px, 100%); padding: 28px; background: var(--card); border-radius: 12px; }
h1 { margin: 0 0 6px; font-size: 20px; }
p { margin: 0 0 18px; color: var(--muted); overflow-wrap: anywhere; }
label { display: block; margin-bottom: 6px; font-weight: 600; }
input, button { width: 100%; height: 44px; border-radius: 8px; font: inherit; }
input { padding: 0 12px; border: 1px solid var(--line); background: var(--ground); color: var(--text); }
button { margin-top: 14px; border: 0; background: var(--accent); color: var(--on); font-weight: 650; cursor: pointer; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
"""
_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Watchkeeper: log in</title><style>{style}</style></head>
<body><main><h1>Watchkeeper</h1><p role="status">{words}</p>
<form method="post" action="/login"><input name="username" autocomplete="username" value="watchkeeper" hidden>
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button></form></main></body></html>
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# What the form may use: its own style, and nothing else.
STYLE_SOURCE = f"'sha256-{_DIGEST}'"


def form(words: str) -> str:
    """The form, with what is to be said."""
    return _FORM.format(style=_STYLE, words=f"{html.escape(words[:1].upper() + words[1:])}.")
