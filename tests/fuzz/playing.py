"""Has a conversation with a broker's port. What the broker answers is not judged here, only heard."""

import asyncio
import contextlib
import socket
import struct

from fuzz.conversations import CLOSE, DEAF, LISTEN, RESET, Conversation

AT_MOST = 15.0
"""Seconds of one conversation."""

_SILENT, _LISTENS = 0.05, 0.5
"""Seconds without a word after which nothing more is waited for, and seconds of listening to one who never stops."""

_STEP = 256 * 1024
_AT_ONCE = socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)


async def play(one: Conversation, address: str) -> None:
    host, _, port = address.rpartition(":")
    with socket.socket() as connection, contextlib.suppress(OSError, TimeoutError):
        connection.setblocking(False)
        async with asyncio.timeout(AT_MOST):
            await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
            if one.end == LISTEN:
                await _say_and_listen(one, connection)
            else:
                await _say(one, connection)
        if one.end in (RESET, DEAF):
            connection.setsockopt(*_AT_ONCE)
        elif one.end == CLOSE:
            connection.shutdown(socket.SHUT_WR)


async def _say(one: Conversation, connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    for piece, times in one.pieces:
        together = max(1, _STEP // max(1, len(piece)))
        for at in range(0, times, together):
            await loop.sock_sendall(connection, piece * min(together, times - at))
        if one.pause:
            await asyncio.sleep(one.pause)


async def _say_and_listen(one: Conversation, connection: socket.socket) -> None:
    heard = asyncio.Event()
    listening = asyncio.create_task(_listen(connection, heard))
    try:
        await _say(one, connection)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LISTENS):
                while not listening.done():
                    heard.clear()
                    await asyncio.wait_for(heard.wait(), _SILENT)
    finally:
        listening.cancel()
        await asyncio.wait([listening])


async def _listen(connection: socket.socket, heard: asyncio.Event) -> None:
    with contextlib.suppress(OSError):
        while await asyncio.get_running_loop().sock_recv(connection, _STEP):
            heard.set()
    heard.set()
