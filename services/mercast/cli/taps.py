"""`mercast taps init`: the topics of the taps."""

import asyncio
import logging
import sys
from pathlib import Path

from cyclopts import App

app = App(name="taps", help="The topics that brokers write rows to.")


@app.command
def init(taps: str = "", /, *, config: Path | None = None) -> None:
    """Make the topics where they are missing, such as: mercast taps init kafka://127.0.0.1:9092

    Brokers do the same when they start. All else, such as partitions and TLS, comes from the file and the
    environment, as docs/configuration.md says.

    Parameters
    ----------
    taps
        Where Kafka is, as kafka://host:port.
    config
        A YAML file with the configuration of a broker.
    """
    from mercast.broker.config import load
    from mercast.broker.config_sources import ConfigError

    try:
        read = load(config, {"taps": taps or None} | ({} if config else {"id": 0}))
        settings = read.tap_settings()
    except ConfigError as error:
        sys.exit(f"mercast taps: {error}")
    if not settings.where or settings.in_files:
        sys.exit("mercast taps: say where Kafka is: mercast taps init kafka://host:9092")
    from mercast.taps.topics import KafkaConnectionError, KafkaError, TopicError, make_topics

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        made = asyncio.run(make_topics(settings))
    except KafkaConnectionError:  # whose words are the library's
        sys.exit(f"mercast taps: no Kafka at {settings.servers}; start one by: mercast kafka")
    except (TopicError, KafkaError, OSError) as error:
        sys.exit(f"mercast taps: {error}")
    for topic in (settings.taps, settings.control, settings.metrics):
        sys.stdout.write(f"{topic}: {'made' if topic in made else 'was there'}\n")
