"""The test server as a process of its own, for tests that kill the client."""

import json
import subprocess
import sys
import urllib.request


def test_it_starts_as_a_process_and_tells_its_counts() -> None:
    command = [sys.executable, "-m", "tests.support.llm_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{int(process.stdout.readline())}"
            body = json.dumps({"model": "m", "messages": []}).encode()
            for _ in range(2):
                with urllib.request.urlopen(f"{url}/v1/chat/completions", data=body) as answer:
                    said = json.load(answer)
            assert said["choices"][0]["message"]["content"] == "{}"
            with urllib.request.urlopen(f"{url}/counts") as counts:
                assert json.load(counts) == {"requests": 2, "repeats": 1, "most_open": 1}
        finally:
            process.terminate()
