"""What a daemon says of itself (`serving.status`) as Prometheus metrics, by the client library of Prometheus.

In: a function that asks the daemon. Out: the text form, or a server that gives it. The daemon itself opens no port: who
wants to be scraped starts `kesco fikit metrics --listen`, and where a node exporter runs, a file for its textfile
collector is enough. Labels are the task's name, its process and its priority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError
from kesco.fikit.policy import Reason

NO_LIBRARY = "K546"
LABELS = ("task", "pid", "priority")
_COUNTERS = (
    ("launched", "launches, held or not", 1.0),
    ("done", "launches that have ended", 1.0),
    ("passed", "launches that were not held", 1.0),
    ("holds", "launches that were held", 1.0),
    ("abandoned", "holds that the client's deadline ended", 1.0),
    ("overruns", "fills that had not ended when a higher task came back", 1.0),
    ("credited", "launches on a credit, which did not ask", 1.0),
    ("fillable_ns", "its gaps in which a waiting kernel had room", 1e-9),
    ("busy_ns", "while lower tasks had work on the GPU in these", 1e-9),
    ("harms", "times that it came back and lower work was in its way", 1.0),
    ("harm_ns", "time that lower work was in its way", 1e-9),
    ("gaps", "times that it was idle", 1.0),
    ("gap_ns", "idle time between its launches", 1e-9),
    ("wide_ns", "the part of it that was long enough to be filled", 1e-9),
    ("filled_ns", "predicted time of what it filled into others' gaps", 1e-9),
    ("drifted", "predictions that were no longer believed", 1.0),
    ("unknown", "launches of which no time is known", 1.0),
    ("lost_records", "launches that the daemon did not see", 1.0),
)


class FikitCollector:
    """A collector of prometheus_client: asks the daemon at each scrape. Says `up` 0 where none answers."""

    def __init__(self, ask: Callable[[], Mapping[str, Any]]) -> None:
        self.ask = ask

    def collect(self) -> Iterator[Any]:
        """The metrics, as prometheus_client wants them."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

        try:
            status = self.ask()
        except ToolchainError:
            status = None
        yield GaugeMetricFamily("kesco_fikit_up", "1 where the daemon answers", value=float(status is not None))
        if status is None:
            return
        tasks = sorted(status["tasks"], key=lambda one: (-one["priority"], one["number"]))
        labelled = [((one["name"], str(one["pid"]), str(one["priority"])), one) for one in tasks]
        for name, what, unit in _COUNTERS:
            suffix = "_seconds" if unit != 1.0 else ""
            family = CounterMetricFamily(f"kesco_fikit_{name.removesuffix('_ns')}{suffix}", what, labels=LABELS)
            for labels, one in labelled:
                family.add_metric(labels, one[name] * unit)
            yield family
        grants = CounterMetricFamily("kesco_fikit_grants", "launches let go, by reason", labels=(*LABELS, "reason"))
        waits = SummaryMetricFamily("kesco_fikit_hold_seconds", "how long launches were held", labels=LABELS)
        longest = GaugeMetricFamily("kesco_fikit_longest_hold_seconds", "the longest of them", labels=LABELS)
        waiting = GaugeMetricFamily("kesco_fikit_waiting", "launches that are held now", labels=LABELS)
        for labels, one in labelled:
            for reason, count in zip(Reason, one["grants"], strict=False):
                grants.add_metric((*labels, reason.name.lower()), count)
            waits.add_metric(labels, one["holds"] - one["waiting"], one["waited_ns"] * 1e-9)
            longest.add_metric(labels, one["longest_ns"] * 1e-9)
            waiting.add_metric(labels, one["waiting"])
        yield from (grants, waits, longest, waiting)
        fill = GaugeMetricFamily(
            "kesco_fikit_fill_ratio", "of the fillable gaps of the holder: the part that was filled"
        )
        fill.add_metric((), fill_ratio(status))
        yield fill


def fill_ratio(status: Mapping[str, Any]) -> float:
    """The part of the holder's gaps with room for a waiting kernel in which others had work on the GPU; 0 without."""
    holder = next((one for one in status["tasks"] if one["number"] == status["holder"]), None)
    if holder is None or not holder["fillable_ns"]:
        return 0.0
    return float(holder["busy_ns"] / holder["fillable_ns"])


def registry(ask: Callable[[], Mapping[str, Any]]) -> Any:
    """A registry with these metrics alone; `ToolchainError` (K546) without prometheus_client."""
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        help_ = "pip install 'kesco[fikit]'"
        raise ToolchainError(
            Diagnostic(NO_LIBRARY, Severity.ERROR, "prometheus_client is not installed", help=help_)
        ) from None
    made = CollectorRegistry()
    made.register(FikitCollector(ask))
    return made


def text(ask: Callable[[], Mapping[str, Any]]) -> str:
    """All metrics in the text form."""
    made = registry(ask)
    from prometheus_client import generate_latest

    found: bytes = generate_latest(made)
    return found.decode()


def serve(ask: Callable[[], Mapping[str, Any]], address: str, port: int) -> Any:
    """A server of them, in threads of its own; returns the one to wait for."""
    made = registry(ask)
    from prometheus_client import start_http_server

    _, thread = start_http_server(port, address, registry=made)
    return thread
