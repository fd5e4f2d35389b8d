"""A detector: does a target know the last word of original texts, but not of their rewordings?"""

from collections.abc import Iterator, Mapping
from math import comb

from coreeval.plugins import DetectorInputs, DetectorQuestion, MemoryFinding, TextAnswer

LEAST_WORDS = 6
"""A shorter text says too little to be recognised by."""
LEAST_PAIRS = 10
QUESTION = "Which word comes next? Answer with that word alone.\n\n"


class LastWord:
    """Asks for the last word of each text in two arms, and compares the shares of right answers."""

    plugin_api: int = 1
    name: str = "last_word"
    title: str = "the last word"
    question: str = "Does the target know the last words of originals, but not of rewordings?"
    limits: str = "It cannot tell memory of a text from a last word that anybody would guess."
    verdicts: Mapping[str, MemoryFinding] = {
        "completes": "remembered",
        "does_not": "not_shown",
        "too_few": "cannot_tell",
    }

    def questions(self, inputs: DetectorInputs) -> Iterator[DetectorQuestion]:
        """Yield a question for each text."""
        for key, words in self._texts(inputs):
            yield DetectorQuestion(key, QUESTION + " ".join(words[:-1]))

    def score(
        self, inputs: DetectorInputs, answers: Mapping[str, TextAnswer]
    ) -> Mapping[str, object]:
        """Return the finding on one target, by an exact sign test of the pairs that differ."""
        right = {
            key: _plain(answers[key].text) == _plain(words[-1])
            for key, words in self._texts(inputs)
            if key in answers and answers[key].kind == "answered"
        }
        samples = [key.removeprefix("original:") for key in right if key.startswith("original:")]
        pairs = [
            (right[f"original:{sample}"], right[f"semantic:{sample}"])
            for sample in samples
            if f"semantic:{sample}" in right
        ]
        original, reworded = (sum(each) for each in zip(*pairs, strict=True)) if pairs else (0, 0)
        won, lost = pairs.count((True, False)), pairs.count((False, True))
        p_value = sum(comb(won + lost, k) for k in range(won, won + lost + 1)) / 2 ** (won + lost)
        verdict = "completes" if p_value <= 0.05 else "does_not"
        return {
            "verdict": verdict if len(pairs) >= LEAST_PAIRS else "too_few",
            "reason": f"of {len(pairs)} texts, {original} original, {reworded} reworded ones "
            f"(p = {p_value:.2g})",
            "pairs": len(pairs),
            "p_value": p_value,
        }

    def _texts(self, inputs: DetectorInputs) -> Iterator[tuple[str, list[str]]]:
        """Yield the words of each sample in both arms, if it has both."""
        for sample, arms in inputs.texts():
            texts = {
                arm: " ".join(fields.values()).split()
                for arm, fields in arms.items()
                if arm in ("original", "semantic")
            }
            if len(texts) == 2 and all(len(words) >= LEAST_WORDS for words in texts.values()):
                yield from ((f"{arm}:{sample.id}", words) for arm, words in texts.items())


def _plain(word: str) -> str:
    return word.strip().strip(".,:;!?\"'").casefold()
