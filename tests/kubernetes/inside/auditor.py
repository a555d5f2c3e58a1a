"""Audits, one after the other, in one Spark that stays: to start it anew would take longer than an audit. What is asked
for is put into a file as JSON (Kafka, since and until in microseconds), the report comes in another."""

import json
import sys
import time
from pathlib import Path

from mercast.cli.with_spark import started
from mercast_streaming.audit.evaluate import SETTINGS
from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_kafka

ASKED, ANSWER = Path("/tmp/asked"), Path("/tmp/answer")
NAMED = 20_000


def main() -> None:
    spark = started("local[2]", kafka=True, conf=SETTINGS | {"spark.driver.memory": "2g"}, name="audits")
    print("ready", flush=True)
    while True:
        if not ASKED.exists():
            time.sleep(0.2)
            continue
        asked = json.loads(ASKED.read_text())
        ASKED.unlink()
        # Nothing is forgiven: what is missing is named, with its time.
        setting = Setting(
            since=asked["since"],
            until=asked["until"],
            grace=5.0,
            around_faults=None,
            across=True,
            held=None,
            named=NAMED,
        )
        began = time.monotonic()
        report = audit(spark, from_kafka(spark, asked["kafka"], "mercast", {}), setting)
        report.seconds = round(time.monotonic() - began, 1)
        part = ANSWER.with_suffix(".part")
        part.write_text(report.to_json())
        part.rename(ANSWER)
        print(f"audited in {report.seconds} s", file=sys.stderr, flush=True)
        spark.catalog.clearCache()


if __name__ == "__main__":
    main()
