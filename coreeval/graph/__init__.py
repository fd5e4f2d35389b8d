"""LangGraph: the only place that imports it.

Checkpoints are plain JSON values, and a run reads nothing else (`checkpoints.py`). The setting
below protects LangGraph Studio, which brings a serializer of its own; LangGraph reads it when it is
imported, so it holds only if CoreEval is imported first.
"""

import os

os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
