"""The small part of SVG that the pictures need. Each named colour has a value for each kind of background."""

from __future__ import annotations

from xml.sax.saxutils import escape

COLOURS = {
    "ink": ("#1f2328", "#e6edf3"),
    "soft": ("#59636e", "#9198a1"),
    "line": ("#d1d9e0", "#3d444d"),
    "good": ("#1a7f37", "#3fb950"),
    "good soft": ("#aceebb", "#12522a"),
    "other": ("#0969da", "#58a6ff"),
    "other soft": ("#b6e3ff", "#0c3a6b"),
    "bad": ("#cf222e", "#ff7b72"),
    "bad soft": ("#ffcecb", "#67161b"),
    "wait": ("#9a6700", "#d29922"),
    "wait soft": ("#fae17d", "#5a4310"),
    "still": ("#afb8c1", "#656c76"),
    "still soft": ("#eaeef2", "#21262d"),
}


class Picture:
    """Shapes on a transparent background."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._shapes: list[str] = []

    def add(self, shape: str) -> None:
        self._shapes.append(shape)

    def rect(self, x: float, y: float, w: float, h: float, fill: str, more: str = "") -> None:
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(w, 0):.1f}" height="{h:.1f}" fill="{{{fill}}}" {more}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, colour: str, more: str = "") -> None:
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{{{colour}}}" {more}/>')

    def path(self, points: list[tuple[float, float]], colour: str, more: str = "") -> None:
        way = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.add(f'<path d="M{way}" stroke="{{{colour}}}" {more}/>')

    def circle(self, x: float, y: float, r: float, fill: str, more: str = "") -> None:
        self.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{{{fill}}}" {more}/>')

    def text(self, x: float, y: float, words: str, colour: str = "ink", anchor: str = "start", more: str = "") -> None:
        words = escape(words).replace("{", "{{").replace("}", "}}")
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" fill="{{{colour}}}" text-anchor="{anchor}" {more}>{words}</text>')

    def cross(self, x: float, y: float, size: float, colour: str) -> None:
        more = 'stroke-width="2.5" stroke-linecap="round"'
        self.line(x - size, y - size, x + size, y + size, colour, more)
        self.line(x - size, y + size, x + size, y - size, colour, more)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
        """A vertical arrow with its head at the second point."""
        down = 1 if y2 > y1 else -1
        self.line(x1, y1, x2, y2 - 4 * down, colour, 'stroke-width="1.8"')
        tip = [(x2 - 4.5, y2 - 8 * down), (x2, y2), (x2 + 4.5, y2 - 8 * down)]
        self.path(tip, colour, 'fill="none" stroke-width="1.8" stroke-linejoin="round" stroke-linecap="round"')

    def drawn(self, shade: str) -> str:
        """The file, for a light or a dark background."""
        which = 1 if shade == "dark" else 0

        class Values(dict):
            def __missing__(self, key: str) -> str:
                return COLOURS[key][which]

        body = "\n".join(shape.format_map(Values()) for shape in self._shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="13">\n'
            f"<title>{escape(self.title)}</title>\n{body}\n</svg>\n"
        )
