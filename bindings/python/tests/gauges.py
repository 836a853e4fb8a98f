"""Prometheus can read the text of RedLock_StatsText, and it has all metrics that the dashboard asks for.

gauges.py DASHBOARD, with the text on the standard input. It needs prometheus_client, whose parser is Prometheus's own
for Python (Debian: python3-prometheus-client). With --without-parser it makes the checks that are possible without it.
"""

from __future__ import annotations

import json
import re
import sys

# Words of the query language, and of Grafana.
WORDS = {"histogram_quantile", "sum", "by", "le", "server", "rate", "min", "max", "abs", "count", "outcome", "version"}
WORDS |= {"label_values", "job", "instance"}


def metrics_of(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\[[^\]]*\]|\$\w+", "", bare)
    names = set(re.findall(r"[a-z_]\w*", bare))
    unknown = {name for name in names - WORDS if not name.startswith("redlock_")}
    assert not unknown, f"{unknown} in {expression}"
    return {name for name in names if name.startswith("redlock_")}


def check_labels(expression: str, labels: dict[str, set[str]]) -> None:
    """Each label that a selector names is one that the metric has, or one that Prometheus adds."""
    for name, selector in re.findall(r"(redlock_\w+)\{([^}]*)\}", expression):
        for label in re.findall(r"(\w+)=", selector):
            assert label in labels[name] | {"job", "instance"}, f"{name} has no label {label}"


def main() -> None:
    text = sys.stdin.read()
    series: dict[str, set[str]] = {}
    if "--without-parser" in sys.argv:
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, rest = line.partition("{")
                series.setdefault(name.split(" ")[0], set()).update(re.findall(r'(\w+)="', rest))
    else:
        from prometheus_client.parser import text_string_to_metric_families

        families = list(text_string_to_metric_families(text))
        kinds = {family.name: family.type for family in families}
        assert len(kinds) == len(families), "a family comes twice"
        assert "unknown" not in kinds.values() and "untyped" not in kinds.values(), kinds
        assert all(family.documentation for family in families)
        for family in families:
            for sample in family.samples:
                series.setdefault(sample.name, set()).update(sample.labels)
            if family.type == "histogram":
                check_histogram(family)
        assert kinds["redlock_lock_acquisitions"] == "counter", kinds
        assert kinds["redlock_lock_acquire_duration_seconds"] == "histogram", kinds
    with open(sys.argv[1], encoding="utf-8") as file:
        dashboard = json.load(file)
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    asked = [target["expr"] for target in targets]
    asked += [it["query"] for it in dashboard["templating"]["list"] if it["type"] == "query"]
    assert len(asked) > 20
    wanted = set().union(*map(metrics_of, asked))
    assert wanted <= set(series), f"{wanted - set(series)} is asked for, and not written"
    for expression in asked:
        check_labels(expression, series)
    # The dashboard shows all metrics of servers and locks.
    shown = {re.sub("_(bucket|sum|count)$", "", name) for name in wanted}
    written = {re.sub("_(bucket|sum|count)$", "", name) for name in series}
    hidden = {"adoptions", "inspections", "detachments"} | {"connections"}
    left_out = {name for name in written - shown if not any(f"_{it}_total" in name for it in hidden)}
    assert not left_out, f"{left_out} is written, and shown nowhere"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    print("checked", len(series))


def check_histogram(family: object) -> None:
    """Buckets grow, and the last one contains all."""
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    counts = {}
    for sample in family.samples:  # type: ignore[attr-defined]
        own = tuple(sorted((key, it) for key, it in sample.labels.items() if key != "le"))
        if sample.name.endswith("_bucket"):
            buckets.setdefault(own, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[own] = sample.value
    assert buckets.keys() == counts.keys()
    for own, found in buckets.items():
        assert found == sorted(found) and found[-1] == (float("inf"), counts[own]), family
        values = [value for _, value in found]
        assert values == sorted(values), family


main()
