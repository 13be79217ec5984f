"""Signatures of posted events, by which a receiver knows that they are ours and recent.

    watchkeeper   Watchkeeper-Signature: t=<unix>,v1=<hex>         HMAC-SHA256 of "<unix>." and the body
    standard      webhook-id: <id>                                 Standard Webhooks 1.0 (standardwebhooks.com):
                  webhook-timestamp: <unix>                        HMAC-SHA256 of "<id>.<unix>." and the body, with the
                  webhook-signature: v1,<base64>                   key that whsec_<base64> holds

The id is the same for every repetition of an event, the time is that of the attempt.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path

from watchkeeper.config.outputs import Webhook

# The headers for an id, a time in whole seconds and a body.
Sign = Callable[[str, int, bytes], dict[str, str]]
PREFIX = b"whsec_"


def signer(settings: Webhook) -> Sign:
    """What signs as the settings say; without a key nothing does. OSError: a key is named, but cannot be used."""
    key = _key(settings)
    if not key:
        return lambda _message_id, _t, _body: {}
    if settings.signature == "watchkeeper":
        return lambda _message_id, t, body: own(key, t, body)
    try:
        secret = base64.b64decode(key.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        secret = b""
    if not secret:
        raise OSError(f"webhook {settings.name}: the key for Standard Webhooks must be whsec_ and base64")
    return lambda message_id, t, body: standard(secret, message_id, t, body)


def own(key: bytes, t: int, body: bytes) -> dict[str, str]:
    """The signature in our own form."""
    return {"Watchkeeper-Signature": f"t={t},v1={_hash(key, f'{t}.'.encode() + body).hex()}"}


def standard(key: bytes, message_id: str, t: int, body: bytes) -> dict[str, str]:
    """The signature of Standard Webhooks."""
    signed = base64.b64encode(_hash(key, f"{message_id}.{t}.".encode() + body)).decode()
    return {"webhook-id": message_id, "webhook-timestamp": str(t), "webhook-signature": f"v1,{signed}"}


def _hash(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def _key(settings: Webhook) -> bytes:
    """The key to sign with, empty for none."""
    if settings.secret_file:
        key = Path(settings.secret_file).read_bytes().strip()
    elif settings.secret_env:
        key = os.environ.get(settings.secret_env, "").encode().strip()
    else:
        return b""
    if not key:
        raise OSError(f"webhook {settings.name}: {settings.secret_file or settings.secret_env} holds no key")
    return key
