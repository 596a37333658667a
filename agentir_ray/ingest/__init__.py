"""Reading other people's files as the arguments of `Memory.add`, and writing our own export. Nothing here knows a store."""

from agentir_ray.ingest.export import record_to_dict, write_export
from agentir_ray.ingest.formats import FORMATS, detect, read
from agentir_ray.ingest.items import Item, Skipped

__all__ = ["FORMATS", "Item", "Skipped", "detect", "read", "record_to_dict", "write_export"]
