"""The latest figures of a run for Prometheus to fetch. Needs the extra ``prometheus``; nothing starts it by itself."""

from typing import Any

from thinwire.observe.records import Event, Examined, Owing, Stepped

_FIGURES = {
    "step": "Steps done",
    "loss": "Training loss of rank 0",
    "seconds_per_step": "Seconds of the last step",
    "bytes_sent_total": "Bytes sent by rank 0",
    "density": "Elements sent over elements synchronised",
    "gain": "Energy sent over energy owed",
    "debt_norm": "Norm of what rank 0 owes",
    "quality": "Held-out quality, lower is better",
}


class Prometheus:
    """Serves gauges named ``thinwire_...`` over HTTP, to this machine only.

    Args:
        port: To listen on, on the loopback interface; 0 takes a free one, see `port`.

    Raises:
        ModuleNotFoundError: The package is not there; the message says how to get it.
    """

    def __init__(self, port: int = 9464) -> None:
        try:
            import prometheus_client
        except ImportError as error:
            raise ModuleNotFoundError(
                "Prometheus needs the package prometheus-client: write pip install 'thinwire[prometheus]'"
            ) from error
        registry = prometheus_client.CollectorRegistry()
        self._gauges: dict[str, Any] = {
            name: prometheus_client.Gauge(f"thinwire_{name}", text, ["method"], registry=registry)
            for name, text in _FIGURES.items()
        }
        self._server, self._thread = prometheus_client.start_http_server(port, addr="127.0.0.1", registry=registry)
        self.port: int = self._server.server_port

    def write(self, event: Event) -> None:
        """Keep an event's figures until the next one's.

        Args:
            event: Any; those without figures are passed over.
        """
        for name, value in _figures(event).items():
            if value is not None and isinstance(event, Stepped | Owing | Examined):
                self._gauges[name].labels(event.method).set(value)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _figures(event: Event) -> dict[str, float | None]:
    if isinstance(event, Stepped):
        return {
            "step": event.step + 1,
            "loss": event.loss,
            "seconds_per_step": event.seconds,
            "bytes_sent_total": event.bytes_total,
            "density": event.density,
            "gain": event.gain,
        }
    if isinstance(event, Owing):
        return {"debt_norm": event.norm}
    return {"quality": event.quality} if isinstance(event, Examined) else {}
