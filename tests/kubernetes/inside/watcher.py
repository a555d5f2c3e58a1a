"""What a monitoring of brokers would see, once a second, as a line of JSON: what each says of itself on its admin port,
and what the dashboard says of all. It runs in a pod, and needs no API server."""

import asyncio
import json
import os
import ssl
import time
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families as families

BROKERS = dict(pair.split("=") for pair in os.environ["BROKERS"].split(","))
"""Hosts of admin ports, by broker."""
PAGE = os.environ["PAGE"]
TOKEN = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
EVERY, PATIENCE, CONNECT = 1.0, 8.0, 4.0
"""Seconds: on a machine that is busy, an answer may take its time; a connection takes less, if there is anybody."""
SUMS = {
    "mercast_ready": "ready",
    "mercast_members": "members",
    "mercast_brokers_reachable": "reachable",
    "mercast_clients": "clients",
    "mercast_tap_rows_lost_total": "rows_lost",
    "mercast_tap_rows_shipped_total": "rows_shipped",
}


async def main() -> None:
    trusted = ssl.create_default_context(cafile=os.environ["MERCAST_CA"])
    page: dict[str, Any] = {}
    # A connection for each question, and each name looked up again: pods come back with other addresses.
    connector = aiohttp.TCPConnector(ssl=trusted, force_close=True, use_dns_cache=False)
    timeout = aiohttp.ClientTimeout(total=PATIENCE, sock_connect=CONNECT)
    async with aiohttp.ClientSession(connector=connector, headers=TOKEN, timeout=timeout) as session:
        brokers: dict[str, Any] = {}
        tasks = [asyncio.create_task(_look(session, page))]
        tasks += [asyncio.create_task(_keep_asking(session, name, brokers)) for name in BROKERS]
        while not any(task.done() for task in tasks):
            await asyncio.sleep(EVERY)
            if len(brokers) == len(BROKERS):
                print(json.dumps({"at": time.time(), "brokers": brokers, "page": page}), flush=True)
        await asyncio.gather(*tasks)


async def _keep_asking(session: aiohttp.ClientSession, name: str, told: dict[str, Any]) -> None:
    """Each by itself: nobody waits for one that is slow."""
    while True:
        told[name] = await _ask(session, BROKERS[name])
        await asyncio.sleep(EVERY)


async def _ask(session: aiohttp.ClientSession, host: str) -> dict[str, Any] | None:
    """None if it does not answer."""
    try:
        async with session.get(f"https://{host}:7472/metrics") as answer:
            text = await answer.text()
        async with session.get(f"https://{host}:7472/readyz") as answer:
            readyz = answer.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None
    found: dict[str, Any] = {"readyz": readyz, "dropped": {}}
    for sample in (one for family in families(text) for one in family.samples):
        if sample.name in SUMS:
            found[SUMS[sample.name]] = found.get(SUMS[sample.name], 0) + sample.value
        elif sample.name == "mercast_events_dropped_total":
            found["dropped"][sample.labels["reason"]] = sample.value
        elif sample.name == "mercast_certificate_expiry_seconds":
            found["expiry"] = min(sample.value, found.get("expiry", sample.value))
        elif sample.name == "mercast_build_info":
            found["build"] = sample.labels
    return found


async def _look(session: aiohttp.ClientSession, page: dict[str, Any]) -> None:
    """The stream that the page has, for as long as it lasts, and then again."""
    forever = aiohttp.ClientTimeout(total=None, sock_read=10)
    while True:
        try:
            async with session.get(f"{PAGE}/events", timeout=forever) as answer:
                async for line in answer.content:
                    if line.startswith(b"data:") and b'"sources"' in line:
                        told = json.loads(line[5:])
                        page["brokers"] = {id: broker[0] for id, broker in told["brokers"].items()}
                        page["figures"] = told["age"]["figures"]
                        page |= {name: state for name, state, _ in told["sources"]}
                        page["at"] = time.time()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
            page.clear()
            await asyncio.sleep(EVERY)


if __name__ == "__main__":
    asyncio.run(main())
