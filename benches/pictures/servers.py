"""Servers that are started, frozen, killed and restarted, and the commands that each of them received."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


class Server:
    """One server on this machine. MONITOR shows what it executes and when."""

    def __init__(self, directory: str) -> None:
        self.port = free_port()
        self.commands: list[tuple[float, list[str]]] = []
        self._directory = directory
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        program = os.environ.get("REDIS_SERVER", "redis-server")
        quiet = ["--save", "", "--logfile", str(pathlib.Path(self._directory, f"{self.port}.log"))]
        self._process = subprocess.Popen([program, "--port", str(self.port), "--dir", self._directory, *quiet])
        watch = self._connect()
        watch.sendall(b"MONITOR\r\n")
        assert watch.recv(5) == b"+OK\r\n"
        threading.Thread(target=self._listen, args=(watch,), daemon=True).start()

    def _connect(self) -> socket.socket:
        for _ in range(500):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", self.port))
            time.sleep(0.01)
        raise RuntimeError(f"no server on port {self.port}")

    def _listen(self, watch: socket.socket) -> None:
        with contextlib.suppress(OSError), watch.makefile("r", errors="replace") as lines:
            for line in lines:
                stamp, _, rest = line.lstrip("+").partition(" ")
                words = rest.split('"')[1::2]
                if words:
                    self.commands.append((float(stamp), words))

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@contextlib.contextmanager
def servers(count: int):
    with tempfile.TemporaryDirectory() as directory:
        started = [Server(directory) for _ in range(count)]
        try:
            yield started
        finally:
            for server in started:
                server.go_on()
                server.kill()
