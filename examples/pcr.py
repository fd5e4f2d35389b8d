"""Tell by CAP's PCR whether a model remembers its training split; the model here is made up.

    python examples/pcr.py [FILE]

It knows nearly all of the items that it was trained on and half of the others, and sticks to four
answers of five when an item is reworded. Its splits are random parts of one pool, which
`exchangeable` vouches for; else a gap in difficulty would explain the verdict as well. FILE gets
its answers, for `coreeval detect pcr`.
"""

import json
import random
import sys
from pathlib import Path

from coreeval.evaluation.pcr import PcrSettings, read_pairs, study

KNOWN = {"train": 0.9, "test": 0.5}
ITEMS = 150


def main(path: Path) -> None:
    """Write the answers, read them back, and print the verdict with its rule."""
    luck = random.Random(7)
    with path.open("w", encoding="utf-8") as file:
        for split, share in KNOWN.items():
            for number in range(ITEMS):
                said = "up" if luck.random() < share else "down"
                again = said if luck.random() < 0.8 else "flat"
                record = {"split": split, "id": number, "reference": "up"}
                answers = {"original_output": said, "modified_output": again}
                file.write(json.dumps(record | answers) + "\n")
    settings = PcrSettings(metric="exact_match", consistency="exact", exchangeable=True)
    found = study({"made up": read_pairs(path).good}, settings)["made up"]
    print(found.difference.pcr)
    print(f"{found.verdict}: {found.reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pairs.jsonl"))
