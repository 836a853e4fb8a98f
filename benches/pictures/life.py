"""The life of a lock over five servers: it is taken, kept, and released, while one server is frozen and one killed."""

from __future__ import annotations

import time

import redlock
from servers import servers
from svg import Picture

TTL = 1.5
RESOURCE = "invoice:42"
LEFT, RIGHT, WIDTH = 104, 24, 860
TOP, LANE = 150, 44


def draw() -> Picture:
    with servers(5) as five:
        run = Run(five)
        run.play()
        return run.picture()


class Run:
    def __init__(self, five) -> None:
        self.five = five
        self.marks: dict[str, float] = {}
        self.left: list[tuple[float, float]] = []

    def play(self) -> None:
        manager = redlock.Manager(*(it.address for it in self.five))
        other = redlock.Manager(*(it.address for it in self.five))
        manager.connect()
        other.connect()
        time.sleep(2.5)  # until no server is new any more
        self.begin = time.time()
        self.wait_until(0.25)
        lease = manager.lock(RESOURCE, ttl=TTL, keep_alive=True)
        self.marks["taken"] = time.time()
        for moment, action in [
            (1.2, lambda: self.note("frozen", self.five[1].freeze)),
            (2.0, lambda: self.note("killed", self.five[3].kill)),
            (3.0, lambda: self.note("goes on", self.five[1].go_on)),
            (3.3, lambda: self.note("is back", self.five[3].start)),
        ]:
            self.watch(lease, moment)
            action()
        self.watch(lease, 5.6)
        lease.unlock()
        self.marks["released"] = time.time()
        self.left.append((time.time(), 0.0))
        with other.lock(RESOURCE, ttl=TTL):
            self.marks["taken by another"] = time.time()
            self.wait_until(6.4)
        self.marks["released by another"] = time.time()
        self.wait_until(6.7)
        self.end = time.time()

    def note(self, what: str, action) -> None:
        self.marks[what] = time.time()
        action()

    def wait_until(self, moment: float) -> None:
        time.sleep(max(0.0, self.begin + moment - time.time()))

    def watch(self, lease, moment: float) -> None:
        while time.time() < self.begin + moment:
            self.left.append((time.time(), lease.remaining))
            time.sleep(0.01)

    def x(self, stamp: float) -> float:
        return LEFT + (stamp - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - RIGHT)

    def picture(self) -> Picture:
        height = TOP + 5 * LANE + 62
        made = Picture(WIDTH, height, "The life of a lock over five servers, one frozen and one killed")
        self.draw_holder(made)
        for number, server in enumerate(self.five):
            self.draw_server(made, number, server)
        bottom = TOP + 5 * LANE + 6
        made.line(LEFT, bottom, WIDTH - RIGHT, bottom, "line")
        for second in range(int(self.end - self.begin) + 1):
            x = self.x(self.begin + second)
            made.line(x, bottom, x, bottom + 5, "line")
            made.text(x, bottom + 19, f"{second} s", "soft", "middle")
        self.draw_legend(made, bottom + 42)
        return made

    def draw_holder(self, made: Picture) -> None:
        taken, released = self.x(self.marks["taken"]), self.x(self.marks["released"])
        made.text(LEFT - 12, 66, "holder", "ink", "end", 'font-weight="600"')
        made.text(LEFT - 12, 84, "time left", "soft", "end", 'font-size="12"')
        top, low = 40, 108
        scale = (low - top) / TTL
        points = [(self.x(at), low - left * scale) for at, left in self.left]
        made.path([(points[0][0], low), *points, (released, low)], "good", 'fill="{good soft}" stroke-width="1.5"')
        made.line(LEFT, low, WIDTH - RIGHT, low, "line")
        made.text(taken, top - 12, "taken, TTL 1.5 s", "good", "start", 'font-weight="600"')
        middle = (taken + released) / 2
        made.text(middle, top - 12, "extended after a sixth to a third of the TTL", "good", "middle")
        made.text(released - 4, top - 12, "released", "good", "end", 'font-weight="600"')
        another = self.x(self.marks["taken by another"])
        made.rect(another, low - 22, self.x(self.marks["released by another"]) - another, 22, "other soft",
                  'stroke="{other}"')
        made.text(another + 2, top + 30, "another holder", "other", "start", 'font-weight="600"')

    def draw_server(self, made: Picture, number: int, server) -> None:
        y = TOP + number * LANE
        middle = y + LANE / 2 - 4
        made.text(LEFT - 12, middle + 4, f"server {number + 1}", "ink", "end")
        made.line(LEFT, middle, WIDTH - RIGHT, middle, "line")
        for begin, end, colour in self.spans(number, server):
            made.rect(self.x(begin), middle - 8, self.x(end) - self.x(begin), 16, f"{colour} soft",
                      f'rx="3" stroke="{{{colour}}}"')
        if number == 1:
            self.draw_pause(made, middle, "frozen", "goes on", "frozen", "still")
        if number == 3:
            self.draw_pause(made, middle, "killed", "is back", "killed, and back with an empty memory", "bad")
            made.cross(self.x(self.marks["killed"]), middle, 6, "bad")
        for at, what, colour in self.moments(server):
            if what == "ask":
                continue
            x = self.x(at)
            if what == "take":
                made.circle(x, middle, 4.5, colour)
            elif what == "extend":
                made.line(x, middle - 8, x, middle + 8, colour, 'stroke-width="2.5"')
            else:
                made.circle(x, middle, 4.5, f"{colour} soft", f'stroke="{{{colour}}}" stroke-width="2"')

    def draw_pause(self, made: Picture, middle: float, begin: str, end: str, words: str, colour: str) -> None:
        x1, x2 = self.x(self.marks[begin]), self.x(self.marks[end])
        more = f'rx="3" stroke="{{{colour}}}" stroke-dasharray="4 3" fill-opacity="0.25"'
        made.rect(x1, middle - 13, x2 - x1, 26, colour, more)
        made.text(x1 + 2, middle - 17, words, "soft", "start", 'font-size="12"')

    def moments(self, server):
        """The commands on the key: the time, the kind, and the colour of the owner."""
        for at, words in server.commands:
            if at < self.begin or RESOURCE not in words:
                continue
            colour = "good" if at < self.marks["released"] - 0.001 else "other"
            name = words[0].lower()
            if name == "set":
                yield at, "take", colour
            elif name == "pexpire":
                yield at, "extend", colour
            elif name in ("del", "delex", "delifeq"):
                yield at, "release", "good" if at < self.marks["taken by another"] else "other"
            else:
                yield at, "ask", colour

    def spans(self, number: int, server):
        """The periods in which the server had the key, each with its owner."""
        death = self.marks["killed"] if number == 3 else None
        begin, until, of = None, 0.0, "good"
        for at, what, colour in self.moments(server):
            if begin is not None and death is not None and begin < death < at:
                yield begin, death, of
                begin, death = None, None
            if begin is not None and at > until:
                yield begin, until, of
                begin = None
            if what == "take":
                begin, until, of = begin or at, at + TTL, colour
            elif what == "extend" and begin is not None:
                until = at + TTL
            elif what == "release" and begin is not None:
                yield begin, at, of
                begin = None
        if begin is not None:
            yield begin, min(until, self.end), of

    def draw_legend(self, made: Picture, y: float) -> None:
        x = LEFT
        made.circle(x + 5, y - 4, 4.5, "good")
        made.text(x + 16, y, "takes the key", "soft")
        x += 122
        made.line(x + 5, y - 12, x + 5, y + 4, "good", 'stroke-width="2.5"')
        made.text(x + 16, y, "extends it", "soft")
        x += 102
        made.circle(x + 5, y - 4, 4.5, "good soft", 'stroke="{good}" stroke-width="2"')
        made.text(x + 16, y, "releases it", "soft")
        x += 106
        made.rect(x, y - 11, 26, 13, "good soft", 'rx="3" stroke="{good}"')
        made.text(x + 34, y, "the server has the key. 3 of 5 are enough.", "soft")
