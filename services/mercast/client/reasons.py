"""Why there is no connection, in the same words at both clients."""

import os
import re
import ssl

from mercast.client.address import Address
from mercast.client.errors import MercastError, NoBroker, Refused
from mercast.wire.frames import ProtocolError

_NUMBER = re.compile(r"\[Errno (\d+)\]")


def unreached(address: Address, error: OSError, timeout: float) -> str:
    """Why nobody answers there, as the system puts it: asyncio has words of its own, with the system's numbers."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return f"no answer within {timeout:g} s"
    if isinstance(error, ssl.SSLEOFError) or not str(error):  # asyncio's for the same
        return lost(address)
    numbers = dict.fromkeys(_NUMBER.findall(str(error)))
    return "; ".join(os.strerror(int(number)) for number in numbers) or error.strerror or str(error)


def lost(address: Address, why: object = None) -> str:
    return f"the connection to {address} was lost{f': {why}' if why else ''}"


def unheard(address: Address, secured: bool, why: object = None) -> str:
    """It ended before the broker said anything: often that is all that TLS lets the other side know."""
    guess = "wants a certificate, or another than it was shown" if secured else "speaks TLS only, as in mercasts://…"
    return f"{lost(address, why)}, before it said anything: perhaps it {guess}"


def no_talk(damage: ProtocolError) -> str:
    return f"it does not speak as a broker does: {damage}"


def no_broker(reasons: dict[Address, MercastError]) -> MercastError:
    """Of several brokers none was of use: one that answered and refused has the most to say."""
    for address, reason in reasons.items():
        if isinstance(reason, Refused):
            return Refused(f"the broker at {address} refuses: {reason}", reason.code)
    where = ", ".join(map(str, reasons))
    why = "; ".join(dict.fromkeys(map(str, reasons.values())))
    return NoBroker(where, why)
