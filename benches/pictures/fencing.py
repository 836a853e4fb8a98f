"""A holder is frozen past the end of its lock, another takes over, and the database refuses the late write."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import redlock
from servers import servers
from svg import Picture

TTL = 1.0
RESOURCE = "account:1"
LEFT, RIGHT, WIDTH = 104, 24, 860
FENCE = "UPDATE account SET fence = ? WHERE id = 1 AND fence <= ?"
WRITE = "UPDATE account SET balance = balance + 1, fence = ? WHERE id = 1 AND fence <= ?"


def draw() -> Picture:
    with servers(3) as three, tempfile.TemporaryDirectory() as directory:
        file = str(pathlib.Path(directory, "bank.db"))
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT, fence BIGINT)")
            database.execute("INSERT INTO account VALUES (1, 100, 0)")
        return picture(run(three, file))


def run(three, file: str) -> list[dict]:
    """The events of two holders, with the time of each."""
    begin = time.time()
    arguments = [file, *(it.address for it in three)]
    first = Holder("A", arguments)
    first.wait_for("reads")
    time.sleep(0.3)
    first.freeze()
    second = Holder("B", arguments)
    second.wait_for("writes")
    time.sleep(1.2)
    first.go_on()
    first.wait_for("writes")
    events = first.events + second.events
    first.end()
    second.wait_for("releases")
    events = first.events + second.events
    second.end()
    for event in events:
        event["at"] -= begin
        if "until" in event:
            event["until"] -= begin
    return sorted(events, key=lambda it: it["at"])


class Holder:
    """A process that locks, reads, works for a while, and writes."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name, self.events = name, []
        self._process = subprocess.Popen([sys.executable, __file__, name, *arguments], stdout=subprocess.PIPE, text=True)

    def wait_for(self, what: str) -> None:
        while not self.events or self.events[-1]["what"] != what:
            self.events.append(json.loads(self._process.stdout.readline()))

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)
        self.events.append({"at": time.time(), "who": self.name, "what": "frozen"})

    def go_on(self) -> None:
        self.events.append({"at": time.time(), "who": self.name, "what": "goes on"})
        self._process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self._process.stdout.read()
        self._process.wait()


def hold(name: str, file: str, addresses: list[str]) -> None:
    """The work of such a process. It checks nothing between reading and writing, like a careless program."""

    def tell(what: str, **more) -> None:
        print(json.dumps({"at": time.time(), "who": name, "what": what, **more}), flush=True)

    manager = redlock.Manager(*addresses, fencing=True)
    manager.connect()
    tell("asks")
    lease = manager.lock(RESOURCE, ttl=TTL, wait=None)
    token = lease.fencing_token
    tell("takes", token=token, until=time.time() + lease.remaining)
    with sqlite3.connect(file, isolation_level=None) as database:
        database.execute(FENCE, (token, token))
        tell("reads", token=token)
        time.sleep(0.35)
        changed = database.execute(WRITE, (token, token)).rowcount
        tell("writes", token=token, changed=changed)
    try:
        lease.unlock()
        tell("releases")
    except redlock.Lost:
        tell("lost")


def picture(events: list[dict]) -> Picture:
    made = Picture(WIDTH, 330, "A frozen holder's late write is refused by its fencing token")
    end = events[-1]["at"] + 0.25
    first = events[0]["at"] - 0.15

    def x(at: float) -> float:
        return LEFT + (at - first) / (end - first) * (WIDTH - LEFT - RIGHT)

    def event(who: str, what: str) -> dict:
        return next(it for it in events if it["who"] == who and it["what"] == what)

    lanes = {"A": 62, "lock": 124, "B": 186, "database": 256}
    for name, y in lanes.items():
        made.text(LEFT - 12, y + 4, {"A": "holder A", "B": "holder B"}.get(name, name), "ink", "end", 'font-weight="600"')
        made.line(LEFT, y, WIDTH - RIGHT, y, "line")

    a, b = event("A", "takes"), event("B", "takes")
    for who, colour, until in (("A", "good", a["until"]), ("B", "other", None)):
        begin = event(who, "takes")["at"]
        finish = until or event("B", "releases")["at"]
        made.rect(x(begin), lanes["lock"] - 12, x(finish) - x(begin), 24, f"{colour} soft", f'rx="3" stroke="{{{colour}}}"')
        words = f"{who} holds it" + (", TTL 1 s" if who == "A" else "")
        made.text((x(begin) + x(finish)) / 2, lanes["lock"] + 4, words, colour, "middle", 'font-weight="600"')

    frozen, awake = event("A", "frozen")["at"], event("A", "goes on")["at"]
    late = event("A", "writes")["at"]
    made.rect(x(a["at"]), lanes["A"] - 10, x(frozen) - x(a["at"]), 20, "good soft", 'rx="3" stroke="{good}"')
    made.rect(x(frozen), lanes["A"] - 13, x(awake) - x(frozen), 26, "still soft",
              'rx="3" stroke="{still}" stroke-dasharray="4 3"')
    made.text((x(frozen) + x(awake)) / 2, lanes["A"] + 4, "frozen: it does not know that time passes", "soft", "middle")
    made.rect(x(awake), lanes["A"] - 10, x(late) - x(awake), 20, "bad soft", 'rx="3" stroke="{bad}"')
    asks = event("B", "asks")["at"]
    made.rect(x(asks), lanes["B"] - 10, x(b["at"]) - x(asks), 20, "wait soft", 'rx="3" stroke="{wait}"')
    made.text((x(asks) + x(b["at"])) / 2, lanes["B"] + 4, "waits", "wait", "middle")
    done = event("B", "releases")["at"]
    made.rect(x(b["at"]), lanes["B"] - 10, x(done) - x(b["at"]), 20, "other soft", 'rx="3" stroke="{other}"')
    made.text((x(b["at"]) + x(done)) / 2, lanes["B"] + 4, "works", "other", "middle")

    # The last digits are enough to distinguish the tokens, and to see which one is greater.
    short = f"…{a['token'] % 10**9:09}", f"…{b['token'] % 10**9:09}"
    assert short[0] < short[1]
    made.text(x(a["at"]), 32, f"A takes the lock: token {short[0]}", "good", "start", 'font-weight="600"')
    made.text(x(late), 32, "A goes on, and writes", "bad", "end", 'font-weight="600"')
    made.text(x(done) + 8, lanes["B"] - 6, f"B: token {short[1]}", "other", "start", 'font-weight="600"')

    low = lanes["database"]
    for who, colour in (("A", "good"), ("B", "other")):
        at = event(who, "reads")["at"]
        made.arrow(x(at), lanes[who] + 14, x(at), low - 4, colour)
        made.circle(x(at), low, 4.5, colour)
    made.text(x(event("A", "reads")["at"]) - 4, low + 24, f"fence = {short[0]}", "good", "start", 'font-size="12"')
    made.text(x(event("B", "reads")["at"]) - 4, low + 24, f"fence = {short[1]}", "other", "start", 'font-size="12"')
    good = event("B", "writes")
    assert good["changed"] == 1 and event("A", "writes")["changed"] == 0
    made.arrow(x(good["at"]), lanes["B"] + 14, x(good["at"]), low - 4, "other")
    made.circle(x(good["at"]), low, 4.5, "other")
    made.text(x(good["at"]), low + 40, "B's write: 1 row", "other", "middle", 'font-size="12"')
    made.arrow(x(late), lanes["A"] + 14, x(late), low - 12, "bad")
    made.cross(x(late), low, 6, "bad")
    made.text(x(late) + 8, low + 24, "A's write, with its old token: 0 rows", "bad", "end", 'font-size="12" font-weight="600"')

    bottom = 306
    made.line(LEFT, bottom, WIDTH - RIGHT, bottom, "line")
    for tenth in range(int((end - first) * 2) + 1):
        at = tenth / 2
        made.line(x(first + at), bottom, x(first + at), bottom + 5, "line")
        made.text(x(first + at), bottom + 18, f"{at:g} s", "soft", "middle", 'font-size="12"')
    return made


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    hold(sys.argv[1], sys.argv[2], sys.argv[3:])
