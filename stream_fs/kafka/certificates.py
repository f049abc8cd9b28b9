"""What exactly is wrong with a broker's certificate: librdkafka says only that it was refused."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Final

from stream_fs.kafka.settings import ClientSettings, Property

_SECONDS: Final = 5.0
"""For a connection and its handshake."""
_MISMATCH: Final = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_TIME: Final = {9, 10}  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


def judgement(settings: ClientSettings) -> str | None:
    """What is wrong with the first certificate that is refused, and what to change.

    None where nothing is found. Asks with a handshake of its own, without a login, under the names
    in the configuration.
    """
    try:
        context = _context(settings.properties)
    except (OSError, ssl.SSLError):  # a file that the client itself has complained of
        return None
    for address in settings.bootstrap.split(","):
        host, _, port = address.strip().rpartition("://")[2].rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _SECONDS) as plain:
                context.wrap_socket(plain, server_hostname=host.strip("[]")).close()
        except ssl.SSLCertVerificationError as refusal:
            return f"{address.strip()}: {refusal.verify_message.rstrip('.')}: {_advice(refusal)}"
        except (OSError, ValueError):  # another trouble than a certificate
            continue
    return None


def _context(properties: Mapping[str, Property]) -> ssl.SSLContext:
    """What the client trusts, as far as it is told by the properties that say it usually."""
    place, text = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    return ssl.create_default_context(
        cafile=None if place is None else str(place), cadata=None if text is None else str(text)
    )


def _advice(refusal: ssl.SSLCertVerificationError) -> str:
    if refusal.verify_code in _MISMATCH:
        return "name the broker in kafka.bootstrap as its certificate does"
    if refusal.verify_code in _TIME:
        return "renew the broker's certificate, or set the clock of this machine"
    return "ssl.ca.location must name the authority that has signed the broker's certificate"
