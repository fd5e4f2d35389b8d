"""The six roles behind a local server that speaks OpenAI's chat completions, as a process.

    python -m tests.support.offline_server --config CONFIG.yaml --port 0

The config is that of the run that will ask; its models are not looked at. The first line on
stdout is the port, and GET /counts tells how many requests came and how many came twice.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

from coreeval.config import load_config
from tests.support.answers import OfflineAnswers
from tests.support.llm_server import serve


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="Seconds added to each answer.")
    parser.add_argument("--cache", type=Path, help="Keeps the prepared news between two starts.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="coreeval-answers-") as folder:
        answers = OfflineAnswers(load_config(options.config), options.cache or Path(folder))
        asyncio.run(serve(options.port, answers, options.latency))


if __name__ == "__main__":
    main()
