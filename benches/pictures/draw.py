"""Draws the pictures of the pages, in colours for light and for dark backgrounds.

    python3 benches/pictures/draw.py life|fencing|latency|cluster ...

life and fencing start servers and record what happens; latency reads docs/BENCH.md; cluster is a drawing. PYTHONPATH leads to
the package redlock, REDLOCK_LIBRARY names the library, and REDIS_SERVER the server: `make pictures` sees to that. Everything
in the recorded pictures is what was seen: times are those of the clock.
"""

import pathlib
import sys

import cluster
import fencing
import latency
import life

ROOT = pathlib.Path(__file__).resolve().parents[2]
TO = ROOT / "docs" / "pictures"


def main() -> int:
    pictures = {
        "life": life.draw,
        "fencing": fencing.draw,
        "latency": lambda: latency.draw(ROOT / "docs" / "BENCH.md"),
        "cluster": cluster.draw,
    }
    names = sys.argv[1:] or list(pictures)
    if not set(names) <= set(pictures):
        print(__doc__, file=sys.stderr)
        return 2
    TO.mkdir(parents=True, exist_ok=True)
    for name in names:
        picture = pictures[name]()
        for shade in ("light", "dark"):
            file = TO / (name + ("-dark" if shade == "dark" else "") + ".svg")
            file.write_text(picture.drawn(shade), encoding="utf-8")
            print(file.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
