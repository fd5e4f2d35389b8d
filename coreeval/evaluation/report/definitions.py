"""What each number of a report is, in a sentence, with the source of a formula or threshold."""

from collections.abc import Mapping
from typing import Final

from coreeval.evaluation.scores import ARM_DEFINITIONS as OF_ARMS

_INTERVAL = "95 % interval"
SAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "accepted": (
        "accepted",
        "the share of all samples that are in the updated arm: rewritten, checked and judged. "
        f"{_INTERVAL}: Wilson (1927).",
    ),
    "balance_shift": (
        "shift of the label balance",
        "total variation distance between the labels of the benchmark and those of the updated "
        "arm: 0 where they are alike, 1 where they have none in common.",
    ),
    "original_noise": (
        "originals read otherwise",
        "the share of the original texts that a blind judge definitely read as another label.",
    ),
    "updated_noise": (
        "new texts refused",
        "the share of the new texts, those of retries included, in which a blind judge did not "
        "read the label.",
    ),
    "noise_bound": (
        "label-noise bound",
        "the share of accepted texts that may have a wrong label, if the judge errs on new texts "
        "no more often than it disagrees with originals (m): at most r m / ((1 - m)(1 - r)), where "
        "r is the share of new texts it refused. Both are taken at the upper end of their "
        "intervals.",
    ),
    "overlap": (
        "overlap with the originals",
        "the share of the accepted texts' word 5-grams that their original has too, of all texts "
        "together; names and what else must stay are among them.",
    ),
    "coverage": (
        "evidence found",
        "the share of all samples for which news inside the window was found, used or not.",
    ),
    "rung": (
        "rung",
        "how far from a sample the search had to go: what it names, other names for it, its topic, "
        "something of the same kind, news that is built alike.",
    ),
    "precision": (
        "precision of a date",
        "how surely the publication time of an article is known; the least sure is the time at "
        "which GDELT saw the page.",
    ),
    "age": ("age", "days from the publication of an article to the end of the window."),
    "after_cutoff": (
        "after the cutoff",
        "all evidence of such a sample was published after the later of the target's training "
        "cutoff and its release.",
    ),
}
DETECTION: Final[Mapping[str, tuple[str, str]]] = {
    "macro_f1": ("macro-F1", f"{OF_ARMS['macro_f1']}."),
    "accuracy": ("accuracy", f"{OF_ARMS['accuracy']}."),
    "n": ("n", f"{OF_ARMS['n']}."),
    "no_label": (
        "refused, unparsed, cut off",
        f"refused: {OF_ARMS['refused']}; unparsed: {OF_ARMS['unparsed']}; cut off: "
        f"{OF_ARMS['truncated']}.",
    ),
    "difference": ("difference of arms", f"{OF_ARMS['difference']}; in percentage points."),
    "ranking": ("order of targets", f"{OF_ARMS['ranking']}; {OF_ARMS['intervals']}."),
    "arm_interval": (f"{_INTERVAL} of a score", f"{OF_ARMS['intervals']}."),
    "lost": (
        "lost",
        "how much accuracy falls from one arm to another, or one fall less another, on the samples "
        "that all arms of the term share; above 0 it is a loss. 95 % interval: paired bootstrap "
        "over samples.",
    ),
    "beyond_noise": (
        "beyond label noise",
        "what is left of a loss if as many new texts have a wrong label as the label-noise bound "
        "allows, and each of them cost a right answer; the upper end is that of the loss.",
    ),
    "detectable": (
        "would show",
        "a true loss of this size would be found in 80 % of such tests.",
    ),
    "covariate": (
        "texts",
        "what can make a text harder, whatever it says: its length, how odd it is to a neutral "
        "model, how well it reads, its rare words, numbers and names.",
    ),
    "effect": (
        "effect",
        "the difference in standard deviations of the texts. Arms differ from a quarter on, if the "
        "difference is significant at 5 % for all rows together (Holm 1979): so unlike groups "
        "cannot be adjusted for (What Works Clearinghouse, Standards Handbook 5.0).",
    ),
    "flagged": (
        "flagged",
        "samples that the target seems to remember, with one in ten of them flagged falsely at "
        "most, on average (Benjamini and Hochberg 1995 over conformal p-values). None is flagged "
        "if a harder arm cannot be ruled out.",
    ),
    "pcr": (
        "PCR",
        "performance consistency ratio: tanh of performance over consistency, each plus alpha "
        "(CAP, equation 9). It is larger where a target was trained.",
    ),
    "consistency": (
        "consistency",
        "how often a target says exactly the same of an item and of the item in other words.",
    ),
    "pcr_difference": (
        "difference of PCR",
        "PCR of the train split minus that of the test split: above 0 the target was fine-tuned, "
        "below 0 the test items were seen (CAP, section 3.2), unless one split is harder than the "
        "other. With references it is what exceeds theirs (after ConStat, arXiv 2405.16281). "
        "Shaded: so small that it counts as none (half-way between what the paper reads as "
        "training and what it passes over).",
    ),
    "pcr_points": (
        "performance, points",
        "performance on the train split minus that on the test split, in hundredths; with "
        "references what exceeds theirs.",
    ),
    "p": (
        "p, adjusted",
        "how often PCR and performance would differ as much between splits that are alike: items "
        "dealt out anew (permutation test, Phipson and Smyth 2010), or with references their "
        "scatter; adjusted over the targets (Benjamini and Hochberg 1995).",
    ),
    "r": (
        "r",
        "Pearson's correlation of the values that a target said with those that were published.",
    ),
    "within": (
        "within tolerance",
        "the share of its answers that are no further from the published value than the tolerance "
        "of the series.",
    ),
    "parsed": ("answered", "the share of the questions to which a number could be read."),
}
MONEY: Final[Mapping[str, tuple[str, str]]] = {
    "billed": (
        "billed",
        "calls that this run sent and paid for, at the prices that were known when it ran.",
    ),
    "found": (
        "found",
        "calls that were answered from the call store: paid by an earlier run, or asked twice.",
    ),
    "unknown_usd": (
        "of unknown end",
        "the worst case of requests that nobody knows the end of; they count against the budget.",
    ),
    "fingerprint": (
        "fingerprint",
        "sha256 of what decides the result; two runs with the same fingerprints asked the same.",
    ),
}
DEFINITIONS: Final[Mapping[str, tuple[str, str]]] = {**SAMPLES, **DETECTION, **MONEY}
"""By key: the name that the page gives a number, and what it is."""
