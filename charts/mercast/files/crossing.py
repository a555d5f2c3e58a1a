"""helm test: an event that is published at one address is received at another. Clusters that have only just found each
other may not carry the first, so it is tried until one arrives or the time is up."""

import asyncio
import os
import sys
import uuid

import mercast

HERE, THERE = os.environ["PUBLISH_AT"], os.environ["RECEIVE_AT"]
WITHIN, PATIENCE = 60.0, 2.0
RUN = uuid.uuid4().hex


async def main() -> None:
    async with (
        mercast.connect(THERE, name="helm-test") as subscriber,
        mercast.connect(HERE, name="helm-test") as publisher,
    ):
        events = await subscriber.subscribe("mercast.helm.test", f"run = '{RUN}'")
        arrived = asyncio.ensure_future(anext(aiter(events)))
        for number in range(int(WITHIN / PATIENCE)):
            receipt = await publisher.publish("mercast.helm.test", {"run": RUN, "number": number})
            print(f"published {number} at {HERE}: {receipt}", flush=True)
            done, _ = await asyncio.wait([arrived], timeout=PATIENCE)
            if done:
                print(f"received {arrived.result().attributes['number']} at {THERE}", flush=True)
                return
        arrived.cancel()
    sys.exit(f"nothing that was published at {HERE} has been received at {THERE} in {WITHIN:.0f} seconds")


asyncio.run(main())
