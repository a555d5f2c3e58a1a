"""`mercast dashboard`: the live web page."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from cyclopts import Parameter

from mercast.broker.addresses import ADMIN_PORT, Address, parse_address
from mercast.cli.admin_port import ByTls, parse_admin, read_token
from mercast.cli.local import interruptible
from mercast.client.options import default_context

if TYPE_CHECKING:
    from mercast.taps.settings import TapSettings


def dashboard(
    *,
    kafka: str | None = None,
    prefix: str = "",
    config: Path | None = None,
    admin: str = f"127.0.0.1:{ADMIN_PORT}",
    admin_token: Annotated[str, Parameter(env_var="MERCAST_ADMIN_TOKEN")] = "",
    older: Path | None = None,
    listen: str = "127.0.0.1:7480",
    token: Annotated[str, Parameter(env_var="MERCAST_DASHBOARD_TOKEN")] = "",
) -> None:
    """Serve a live page of brokers, links, rates and figures, until Ctrl-C (docs/dashboard.md).

    What it needs may be started later, and may go and come back: the page says what is missing.

    Parameters
    ----------
    kafka
        Kafka's address, or several with commas, for taps and metrics; "" for none. 127.0.0.1:9092 unless the
        configuration names one.
    prefix
        Of the topics; mercast unless told otherwise.
    config
        A YAML file with the configuration of a broker, for TLS and the like toward Kafka.
    admin
        Admin addresses of brokers, with commas; "" for none. Without a token, other brokers of this machine are found.
    admin_token
        What admin ports ask for: a file that holds it (with a slash in its path), or the token itself.
    older
        Where rows of older events are kept: a folder of taps in files, or one that ends in .parquet, as for
        mercast audit.
    listen
        Where the page is. Beyond this machine only with a token.
    token
        What the page asks for: a file that holds it (with a slash in its path), or the token itself.
    """
    try:
        address = parse_address(listen, 7480)
        admins = [parse_admin(one.strip()) for one in admin.split(",") if one.strip()]
        token, admin_token = read_token(token), read_token(admin_token)
    except ValueError as error:
        _stop(str(error))
    if not token and not address.is_loopback:
        _stop(f"--listen {address} can be reached by others: give --token, or listen at 127.0.0.1")
    if older is not None and not older.is_dir():
        _stop(f"--older {older}: there is no such folder")
    settings = _settings(kafka, prefix, config)
    try:
        with interruptible():
            asyncio.run(
                _serve(
                    address,
                    token,
                    settings,
                    admins,
                    admin_token,
                    older,
                    settings.prefix if settings else prefix or "mercast",
                )
            )
    except OSError as error:
        _stop(f"{address}: {error.strerror or error}")
    except KeyboardInterrupt:
        _say("stopped")


async def _serve(
    address: Address, token: str, settings: "TapSettings | None", admins: list[Address], admin_token: str,
    older: Path | None, prefix: str,
) -> None:  # fmt: skip
    from mercast.dashboard.admin_source import AdminSource
    from mercast.dashboard.older import Older
    from mercast.dashboard.server import Server
    from mercast.dashboard.view import State

    state = State()
    asked = [(Address(*one), type(one) is ByTls) for one in admins]
    ssl = default_context() if any(tls for _, tls in asked) else None
    source = AdminSource(asked, admin_token, state, ssl) if asked else None
    runs = [] if source is None else [source.run]
    if settings is not None:
        from mercast.dashboard.kafka_source import KafkaSource

        runs.append(KafkaSource(settings, state).run)
    server = Server(
        state,
        token,
        None if source is None else source.tables,
        None if older is None else partial(Older, older, prefix),
    )
    bound = await server.start(address)
    _say(f"dashboard at http://{bound}/   (Ctrl-C stops it)")
    try:
        async with asyncio.TaskGroup() as group:
            for run in (*runs, server.run):
                group.create_task(run())
    finally:
        await server.stop()


def _settings(kafka: str | None, prefix: str, config: Path | None) -> "TapSettings | None":
    """As brokers have them; what is said here counts more."""
    from mercast.broker.config import load
    from mercast.broker.config_sources import ConfigError

    if kafka == "":
        return None
    where = kafka or ("" if config else "127.0.0.1:9092")
    given = {"taps": f"kafka://{where}" if where else None, "taps_prefix": prefix or None} | (
        {} if config else {"id": 0}
    )
    try:
        settings = load(config, given).tap_settings()
        return None if not settings.where or settings.in_files else settings
    except ConfigError as error:
        _stop(str(error))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast dashboard: {reason}")
