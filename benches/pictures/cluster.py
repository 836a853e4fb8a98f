"""Tags, voters and masters: how a slot of a Redis Cluster is one voter. Nothing is measured here."""

from __future__ import annotations

from svg import Picture

WIDTH, HEIGHT = 860, 372
CODE = 'font-family="ui-monospace, Menlo, Consolas, monospace"'
LEFT, STEP, BOX = 44, 272, 228
# Of each voter: its tag, its slot, and the slots of the master that has it in a new cluster of three masters.
VOTERS = [("a", 15495, "10923–16383"), ("b", 3300, "0–5460"), ("c", 7365, "5461–10922")]


def draw() -> Picture:
    made = Picture(WIDTH, HEIGHT, "Three tags, three slots on three masters of one cluster: three voters")
    middle = WIDTH / 2
    box(made, middle - 190, 14, 380, 44, "line", "still soft")
    made.text(middle, 41, "a program takes the lock “orders”: 2 of 3 votes", anchor="middle", more='font-weight="600"')
    made.rect(18, 204, WIDTH - 36, 154, "still soft", 'rx="8" stroke="none"')
    made.text(294, 229, "one cluster of six nodes", "soft", "middle")
    made.text(566, 229, "each says who owns a slot", "soft", "middle")
    for nth, voter in enumerate(VOTERS):
        draw_voter(made, LEFT + nth * STEP, *voter)
    return made


def draw_voter(made: Picture, x: float, tag: str, slot: int, slots: str) -> None:
    middle = x + BOX / 2
    made.line(WIDTH / 2, 58, middle, 88, "good", 'stroke-width="1.8"')
    box(made, x, 88, BOX, 72, "good", "good soft")
    made.text(middle, 110, f"voter: tag {tag}, slot {slot}", anchor="middle", more='font-weight="600"')
    made.text(middle, 130, f"{{{tag}}}orders", anchor="middle", more=CODE)
    made.text(middle, 148, f"{{{tag}}}redlock:guard", anchor="middle", more=CODE)
    made.arrow(middle, 162, middle, 244, "good")
    box(made, x, 246, BOX, 46, "other", "other soft")
    made.text(middle, 265, "master", anchor="middle", more='font-weight="600"')
    made.text(middle, 283, f"slots {slots}", "soft", "middle")
    made.line(middle, 292, middle, 312, "still", 'stroke-width="1.8" stroke-dasharray="4 3"')
    box(made, x, 312, BOX, 32, "still", "still soft")
    made.text(middle, 333, "its replica: owner after a failover", "soft", "middle")


def box(made: Picture, x: float, y: float, width: float, height: float, colour: str, fill: str) -> None:
    made.rect(x, y, width, height, fill, f'rx="6" stroke="{{{colour}}}" stroke-width="1.5"')
