"""Servers that are reached through threads of this process. Where threads are greenlets, a call that waits in C never
reaches them, because the greenlets do not run meanwhile.
"""

from __future__ import annotations

import socket
import threading


def proxies(servers: list[str]) -> list[str]:
    """Returns the addresses of proxies for these servers."""
    return [_proxy(server) for server in servers]


def _proxy(server: str) -> str:
    host, port = server.split(":")
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            client, _ = listener.accept()
            try:
                behind = socket.create_connection((host, int(port)))
            except OSError:  # a server may be down
                client.close()
                continue
            _start(_pass_on, client, behind)
            _start(_pass_on, behind, client)

    _start(accept)
    return f"127.0.0.1:{listener.getsockname()[1]}"


def _start(body: object, *arguments: object) -> None:
    threading.Thread(target=body, args=arguments, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of the two has gone
