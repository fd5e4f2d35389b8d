"""Make the pictures of the documentation: `python -m scripts.pictures [BROWSER]`.

They show the pages of examples/refreshed, whose texts a capable model wrote, with two targets of
known memory. This needs Chromium, or another browser that takes its options, but no network.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "refreshed"
SAMPLE = "emotion/test/34"
"""The sample whose page is shown."""
HEIGHTS = {"run": 1000, "sample": 1240, "detection": 1000, "samples": 800}
"""Pixels of each picture, which is 1,200 wide."""


def make_pictures(place: Path, browser: str) -> None:
    """Replay the example in `place`, ask the targets, and write the pictures into docs/images.

    Raises:
        CalledProcessError: a command failed.
    """
    cassette, data = EXAMPLE / "emotion.cassette", EXAMPLE / "emotion"
    _run(place, "cassette", "replay", cassette, "--out", "refreshed", "--dataset", data)
    targets = ["--target", "offline:clean", "--target", "offline:contaminated"]
    _run(place, "evaluate", "refreshed", *targets)
    _run(place, "view", "refreshed", "--bundle", "pages")
    for name, page in find_pages(place / "pages").items():
        picture = ROOT / "docs" / "images" / f"{name}.png"
        size = f"--window-size=1200,{HEIGHTS[name]}"
        options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", size]
        subprocess.run([browser, *options, f"--screenshot={picture}", page.as_uri()], check=True)


def find_pages(pages: Path) -> dict[str, Path]:
    """Return the page that each picture shows."""
    title = f"<title>{SAMPLE} "
    of_sample = next(
        each for each in (pages / "sample").glob("*.html") if title in each.read_text()
    )
    return {
        "run": pages / "index.html",
        "sample": of_sample,
        "detection": pages / "detection.html",
        "samples": pages / "samples.html",
    }


def _run(place: Path, *arguments: object) -> None:
    command = [sys.executable, "-m", "coreeval", *map(str, arguments)]
    subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(Path(folder), (*sys.argv[1:], "chromium")[0])
