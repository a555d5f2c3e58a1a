"""How to reach Kafka: what the settings say of TLS and SASL, in the words of the library."""

import logging
from typing import Any

from aiokafka.helpers import create_ssl_context

from mercast.taps.settings import TapSettings

logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it tells every try; we tell when things change


def connection(settings: TapSettings) -> dict[str, Any]:
    """Arguments that producers and admin clients share."""
    security = ("SASL_" if settings.sasl_mechanism else "") + ("SSL" if settings.tls else "PLAINTEXT")
    given: dict[str, Any] = {"bootstrap_servers": settings.servers, "security_protocol": security}
    if settings.tls:
        files = {"cafile": settings.tls_ca, "certfile": settings.tls_cert, "keyfile": settings.tls_key}
        given["ssl_context"] = create_ssl_context(**{name: str(file) for name, file in files.items() if file})
    if settings.sasl_mechanism:
        given |= {
            "sasl_mechanism": settings.sasl_mechanism,
            "sasl_plain_username": settings.sasl_user,
            "sasl_plain_password": settings.sasl_password,
        }
    return given
