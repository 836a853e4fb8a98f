"""Servers that are reached through threads of this process. Where threads are greenlets, a call that waits in C never
reaches them, because the greenlets do not run meanwhile.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Callable


def proxies(servers: list[str]) -> list[str]:
    """Returns the addresses of proxies for these servers."""
    return [Proxy(server).address for server in servers]


class Proxy:
    """One proxy, which can be cut off from its clients."""

    def __init__(self, server: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._host, self._port = server.split(":")
        self._clients: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        _start(self._accept)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is cut
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                try:
                    behind = socket.create_connection((self._host, int(self._port)))
                except OSError:  # a server may be down
                    client.close()
                    continue
                threads = _start(_pass_on, client, behind), _start(_pass_on, behind, client)
                _start(_close, threads, client, behind)

    def cut(self) -> None:
        """Ends all connections, and accepts no more."""
        for end in (self._listener, *self._clients):
            with contextlib.suppress(OSError):  # it is closed already
                end.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _start(body: Callable[..., object], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=body, args=arguments, daemon=True)
    thread.start()
    return thread


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of the two has gone


def _close(threads: tuple[threading.Thread, ...], *sockets: socket.socket) -> None:
    for thread in threads:
        thread.join()
    for it in sockets:
        it.close()
