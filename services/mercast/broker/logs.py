"""Logs: for people on a terminal, or a JSON object a line. What libraries log goes the same way.

Every line names the broker and its cluster. There is never a line per event: counters (broker/metrics.py) and taps
tell of those.
"""

import logging
import sys
from typing import TextIO

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor, WrappedLogger

from mercast.broker.config import BrokerConfig

_MESSAGE = "message"
"""The key of what is said; structlog's own is "event", which means something else here."""


def set_up_logs(config: BrokerConfig, stream: TextIO | None = None) -> None:
    """For the whole process, to standard error; a second call replaces what the first set up."""
    stream = stream or sys.stderr
    for_people = config.log_format == "console" or (config.log_format == "auto" and stream.isatty())
    always: list[Processor] = [
        _naming(config),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper("%H:%M:%S", utc=False)
        if for_people
        else structlog.processors.TimeStamper("iso"),
        structlog.processors.StackInfoRenderer(),
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *always],
            processors=[ProcessorFormatter.remove_processors_meta, *_rendering(for_people, stream.isatty())],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(config.log_level.upper())
    logging.captureWarnings(True)
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *always, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _naming(config: BrokerConfig) -> Processor:
    def name(_: WrappedLogger, __: str, line: EventDict) -> EventDict:
        return {"broker": config.id, "cluster": config.cluster, **line}

    return name


def _rendering(for_people: bool, coloured: bool) -> list[Processor]:
    if for_people:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=coloured, exception_formatter=plain)]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer(_MESSAGE),
        structlog.processors.JSONRenderer(default=str),
    ]
