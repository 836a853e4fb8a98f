"""How long a lock takes compared with other libraries, from the figures in docs/BENCH.md."""

from __future__ import annotations

import math
import pathlib
import re

from svg import Picture

LEFT, RIGHT, WIDTH = 132, 24, 860
ROWS = [
    ("1 thread, 5 servers", "1 thread, 5 servers: lock, median", "1 thread, 5 servers: lock, 99th percentile"),
    ("one of five servers frozen", "one of five frozen: lock, median", "one of five frozen: lock, 99th percentile"),
]
OURS = "ours"
LEFT_OUT = ("same requests", "hiredis, polling", "redis-py")


def draw(bench: pathlib.Path) -> Picture:
    text = bench.read_text(encoding="utf-8")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    names = next(line for line in lines if line[0] == "Figure")
    last = names.index("Ratio")
    rows = {line[0]: dict(zip(names[1:last], line[1:last])) for line in lines if line[0] != "Figure"}
    who = [name for name in names[1:last] if name not in LEFT_OUT]
    step, top = 26, 62
    height = sum(top + step * len(who) for _ in ROWS) + 40
    made = Picture(WIDTH, height, "How long a lock takes, beside other libraries")
    y = 0.0
    for title, median, tail in ROWS:
        made.text(LEFT, y + 24, title, "ink", "start", 'font-weight="600" font-size="14"')
        panel(made, y + top, step, who, rows[median], rows[tail])
        y += top + step * len(who)
    stamp = re.search(r"^- Date: (\S+)", text, re.MULTILINE)
    words = f"five local servers, {stamp[1] if stamp else ''}; the floor is a C program on raw sockets"
    made.circle(LEFT + 5, y + 22, 5, "good")
    made.text(LEFT + 16, y + 26, "median", "soft")
    made.line(LEFT + 82, y + 16, LEFT + 82, y + 28, "good", 'stroke-width="2.5"')
    made.text(LEFT + 92, y + 26, "99th percentile", "soft")
    made.text(WIDTH - RIGHT, y + 26, words, "soft", "end", 'font-size="12"')
    return made


def panel(made: Picture, y: float, step: float, who: list[str], median: dict[str, str], tail: dict[str, str]) -> None:
    least, most = 30.0, 1_000_000.0

    def x(us: float) -> float:
        share = math.log(us / least) / math.log(most / least)
        return LEFT + min(max(share, 0), 1) * (WIDTH - LEFT - RIGHT)

    for us, words in ((50, "50 µs"), (100, "100"), (1_000, "1 ms"), (10_000, "10 ms"), (100_000, "100 ms"), (1_000_000, "1 s")):
        made.line(x(us), y - 12, x(us), y + step * len(who) - 10, "line")
        made.text(x(us), y - 18, words, "soft", "end" if us == most else "middle", 'font-size="12"')
    for number, name in enumerate(who):
        middle = y + number * step
        colour = "good" if name == OURS else "other" if name != "floor" else "still"
        made.text(LEFT - 12, middle + 4, "redlock" if name == OURS else name, "ink", "end",
                  'font-weight="600"' if name == OURS else "")
        low, high = microseconds(median[name]), microseconds(tail[name])
        if low is None:
            words = {"hung": "did not come back", "": "not measured"}.get(median[name], median[name])
            made.text(LEFT + 6, middle + 4, words, "bad" if median[name] == "hung" else "soft", "start", 'font-size="12"')
            continue
        if high is not None:
            made.line(x(low), middle, x(high), middle, colour, 'stroke-width="3" stroke-opacity="0.45"')
            made.line(x(high), middle - 6, x(high), middle + 6, colour, 'stroke-width="2.5"')
        made.circle(x(low), middle, 5, colour)
        words = median[name] + (f" – {tail[name]}" if high is not None else "")
        end = x(high or low) + 10
        is_late = end > WIDTH - 170
        made.text(x(low) - 10 if is_late else end, middle + 4, words, "soft", "end" if is_late else "start", 'font-size="12"')


def microseconds(cell: str) -> float | None:
    found = re.fullmatch(r"([\d.,]+) (µs|ms|s)", cell)
    if found is None:
        return None
    return float(found[1].replace(",", "")) * {"µs": 1, "ms": 1_000, "s": 1_000_000}[found[2]]
