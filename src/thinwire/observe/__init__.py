"""What happened: counters and spans from every arrow of the data path, and where they go.

What stands here does not import torch; `thinwire.observe.recorder` does.
"""

from thinwire.observe.records import Began, Ended, Event, Examined, Owing, Planned, Predicted, Stepped, Wired
from thinwire.observe.sinks import Jsonl, Several, Sink

__all__ = [
    "Began",
    "Ended",
    "Event",
    "Examined",
    "Jsonl",
    "Owing",
    "Planned",
    "Predicted",
    "Several",
    "Sink",
    "Stepped",
    "Wired",
]
