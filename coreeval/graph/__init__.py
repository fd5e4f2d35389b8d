"""LangGraph: the only place that imports it.

Checkpoints are plain JSON values. LangGraph reads this setting once, when it is imported;
without it a crafted checkpoint could run code when it is loaded.
"""

import os

os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
