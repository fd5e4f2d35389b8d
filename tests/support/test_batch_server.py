"""The batch server as a process of its own, for tests that kill the client."""

import json
import subprocess
import sys
import urllib.error
import urllib.request

import pytest


def call(url: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        said: dict[str, object] = json.load(answer)
    return said


def test_it_starts_as_a_process_and_tells_its_counts() -> None:
    command = [sys.executable, "-m", "tests.support.batch_server", "--looks", "2"]
    faults = json.dumps({"create_status": [429]})
    with subprocess.Popen(
        [*command, "--faults", faults], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            params = {"model": "m", "messages": []}
            batch = {"requests": [{"custom_id": "a", "params": params}]}
            with pytest.raises(urllib.error.HTTPError, match="429"):
                call(f"{url}/v1/messages/batches", batch)
            made = call(f"{url}/v1/messages/batches", batch)["id"]
            assert call(f"{url}/v1/messages/batches/{made}")["processing_status"] == "in_progress"
            assert call(f"{url}/v1/messages/batches/{made}")["processing_status"] == "ended"
            call(f"{url}/v1/messages", params)
            counts = call(f"{url}/counts")
            assert (counts["batches"], counts["looks"], counts["paid"]) == (1, 2, 2)
            assert (counts["paid_ids"], counts["most_paid"]) == ({"a": 1}, 2)
            assert call(f"{url}/faults", {"lost": True})["lost"] is True
            with pytest.raises(urllib.error.HTTPError, match="404"):
                call(f"{url}/v1/messages/batches/{made}")
        finally:
            process.terminate()
