"""What happened: counters and spans from every arrow of the data path, and where they go."""

from thinwire.observe.recorder import Recorder
from thinwire.observe.records import Began, Ended, Event, Examined, Owing, Planned, Stepped, Wired
from thinwire.observe.sinks import Jsonl, Several, Sink

__all__ = [
    "Began",
    "Ended",
    "Event",
    "Examined",
    "Jsonl",
    "Owing",
    "Planned",
    "Recorder",
    "Several",
    "Sink",
    "Stepped",
    "Wired",
]
