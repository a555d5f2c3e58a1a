"""Where taps go and what they are: one value for broker and command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import unquote, urlsplit

from mercast.protocol.tap_messages import ALL, Held

_PORTS = range(1, 1 << 16)

Compression: TypeAlias = Literal["none", "gzip", "lz4"]


@dataclass(frozen=True)
class TapSettings:
    where: str
    """kafka://host:port, with further ones after commas; or file:///folder."""
    prefix: str = "mercast"
    partitions: int = 4
    replication: int = 1
    retention_hours: float = 24.0
    compression: Compression = "none"
    buffer_bytes: int = 32 * 1024 * 1024
    file_bytes: int = 256 * 1024 * 1024
    files: int = 4
    held: Held = ALL
    tls: bool = False
    tls_ca: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    sasl_mechanism: str = ""
    sasl_user: str = ""
    sasl_password: str = ""

    @property
    def taps(self) -> str:
        """The topic of rows about events."""
        return f"{self.prefix}.taps"

    @property
    def control(self) -> str:
        return f"{self.prefix}.control"

    @property
    def metrics(self) -> str:
        return f"{self.prefix}.metrics"

    @property
    def servers(self) -> str:
        """Of Kafka, as it wants them."""
        return check_where(self.where).netloc

    @property
    def folder(self) -> Path:
        return Path(unquote(check_where(self.where).path))

    @property
    def in_files(self) -> bool:
        return check_where(self.where).scheme == "file"


class Where:
    """A checked address of taps."""

    def __init__(self, scheme: str, netloc: str, path: str) -> None:
        self.scheme, self.netloc, self.path = scheme, netloc, path


def check_where(text: str) -> Where:
    """ValueError says what would be right."""
    parts = urlsplit(text)
    if parts.scheme == "kafka" and parts.netloc and parts.path in ("", "/"):
        for server in parts.netloc.split(","):
            host, _, port = server.rpartition(":")
            if not all(host.removesuffix(".").split(".")) or not port.isdecimal() or int(port) not in _PORTS:
                raise ValueError(f"{server!r} names no host and port: write kafka://host:9092")
        return Where("kafka", parts.netloc, "")
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return Where("file", "", parts.path)
    raise ValueError(f"{text!r} is neither kafka://host:port nor file:///folder")
