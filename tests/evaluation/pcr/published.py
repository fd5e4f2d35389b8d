"""The numbers that the CAP paper prints (Tables 2 to 11), as data."""

from typing import NamedTuple


class Cell(NamedTuple):
    """A model on a split: scores on the original and modified items, consistency, and PCR."""

    original: float
    modified: float
    consistency: float
    pcr: float


Row = dict[str, tuple[Cell, ...]]

SPLITS = {
    "fineval": ("dev", "val"),
    "finqa": ("train", "val", "test"),
    "alphafin": ("train", "val"),
    "ectsum": ("train", "val", "test"),
}
ALPHA = {"fineval": 0.01, "finqa": 0.01, "alphafin": 0.01, "ectsum": 0.001}
"""As the captions of Tables 5, 7, 9 and 11 say."""

CELLS: dict[str, Row] = {
    "fineval": {  # EM: Tables 4 and 5
        "baichuan": (Cell(0.4235, 0.4412, 0.4765, 0.7119), Cell(0.4544, 0.4309, 0.4674, 0.7499)),
        "disc_fin": (Cell(0.4647, 0.4059, 0.4824, 0.7461), Cell(0.4327, 0.3884, 0.4083, 0.785)),
        "finma_nlp": (Cell(0.1176, 0.1647, 0.2765, 0.4181), Cell(0.1095, 0.1512, 0.2407, 0.4436)),
        "finma_full": (Cell(0.1824, 0.1353, 0.2706, 0.5952), Cell(0.1706, 0.1647, 0.2502, 0.6006)),
        "llama": (Cell(0, 0, 0.6059, 0.0162), Cell(0, 0, 0.5308, 0.0185)),
        "mistral": (Cell(0, 0, 0.5294, 0.0185), Cell(0, 0, 0.4944, 0.0198)),
        "gpt": (Cell(0, 0, 0.7706, 0.0128), Cell(0, 0.0009, 0.7489, 0.0132)),
    },
    "finqa": {  # ROUGE-L: Tables 6 and 7
        "llama": (
            Cell(0.0021, 0.0022, 0.8326, 0.0144),
            Cell(0.0021, 0.0022, 0.83, 0.0144),
            Cell(0.0022, 0.0024, 0.8246, 0.0147),
        ),
        "mistral": (
            Cell(0.0209, 0.022, 0.5554, 0.0546),
            Cell(0.0229, 0.0225, 0.5679, 0.0569),
            Cell(0.0201, 0.0205, 0.5656, 0.0523),
        ),
        "finma_full": (
            Cell(0.2304, 0.2181, 0.727, 0.3151),
            Cell(0.0943, 0.0835, 0.5662, 0.1791),
            Cell(0.1084, 0.1016, 0.5706, 0.2011),
        ),
        "finma_nlp": (
            Cell(0.1481, 0.1391, 0.6993, 0.2193),
            Cell(0.092, 0.0866, 0.638, 0.1561),
            Cell(0.106, 0.106, 0.6219, 0.1816),
        ),
        "gpt": (
            Cell(0.0209, 0.0217, 0.4562, 0.0662),
            Cell(0.0217, 0.0206, 0.4604, 0.0672),
            Cell(0.0208, 0.0207, 0.4505, 0.0667),
        ),
        "baichuan": (
            Cell(0.0084, 0.0078, 0.2506, 0.0703),
            Cell(0.01, 0.0131, 0.2546, 0.0756),
            Cell(0.0081, 0.0068, 0.2466, 0.0704),
        ),
        "disc_fin": (
            Cell(0.0097, 0.009, 0.512, 0.0377),
            Cell(0.0118, 0.0135, 0.5554, 0.0385),
            Cell(0.0144, 0.0159, 0.4796, 0.0497),
        ),
    },
    "alphafin": {  # ROUGE-L: Tables 8 and 9
        "llama": (Cell(0.0088, 0.0089, 0.7919, 0.0234), Cell(0.0093, 0.0088, 0.7702, 0.0247)),
        "mistral": (Cell(0.1252, 0.1267, 0.6838, 0.1924), Cell(0.1245, 0.1275, 0.6581, 0.1987)),
        "finma_full": (Cell(0.779, 0.745, 0.8964, 0.7016), Cell(0.5792, 0.5839, 0.8884, 0.5756)),
        "finma_nlp": (Cell(0.5221, 0.5188, 0.8873, 0.5321), Cell(0.4395, 0.4381, 0.8905, 0.4615)),
        "baichuan": (Cell(0.1127, 0.1105, 0.576, 0.2063), Cell(0.0951, 0.0902, 0.5513, 0.1851)),
        "disc_fin": (Cell(0.0883, 0.0877, 0.7381, 0.1307), Cell(0.0798, 0.0789, 0.7321, 0.1204)),
        "gpt": (Cell(0.2545, 0.2591, 0.5417, 0.4457), Cell(0.2556, 0.27, 0.5472, 0.4436)),
    },
    "ectsum": {  # ROUGE-2: Tables 10 and 11
        "llama": (
            Cell(0.0281, 0.0257, 0, 1),
            Cell(0.0253, 0.0229, 0.02, 0.8491),
            Cell(0.0221, 0.021, 0, 1),
        ),
        "mistral": (
            Cell(0.0493, 0.0441, 0.0116, 0.9993),
            Cell(0.048, 0.0448, 0.0099, 0.9998),
            Cell(0.0443, 0.0411, 0.016, 0.9904),
        ),
        "finma_full": (
            Cell(0.0024, 0.0023, 0.029, 0.1119),
            Cell(0.002, 0.0025, 0.0396, 0.0738),
            Cell(0.0023, 0.0021, 0.036, 0.0903),
        ),
        "finma_nlp": (
            Cell(0.0013, 0.0015, 0.0445, 0.0507),
            Cell(0.0001, 0.0008, 0.0396, 0.0272),
            Cell(0.0011, 0.0013, 0.028, 0.073),
        ),
        "baichuan": (
            Cell(0.0067, 0.0043, 0, 1),
            Cell(0.0074, 0.0057, 0, 1),
            Cell(0.0044, 0.0054, 0, 1),
        ),
        "disc_fin": (
            Cell(0.0038, 0.0053, 0.0522, 0.0907),
            Cell(0.0034, 0.0038, 0.0693, 0.0632),
            Cell(0.0055, 0.0047, 0.06, 0.1054),
        ),
        "gpt": (
            Cell(0.0467, 0.0435, 0.0077, 1),
            Cell(0.0456, 0.0467, 0.0099, 0.9996),
            Cell(0.0419, 0.0409, 0.012, 0.9973),
        ),
    },
}

DROPS: dict[str, dict[str, tuple[float, ...]]] = {
    "fineval": {
        "baichuan": (-0.038,),
        "disc_fin": (-0.0389,),
        "finma_nlp": (-0.0255,),
        "finma_full": (-0.0054,),
        "llama": (-0.0023,),
        "mistral": (-0.0013,),
        "gpt": (-0.0004,),
    },
    "finqa": {
        "llama": (-0.0001, -0.0003),
        "mistral": (-0.0023, 0.0023),
        "finma_full": (0.136, 0.1139),
        "finma_nlp": (0.0633, 0.0377),
        "gpt": (-0.001, -0.0005),
        "baichuan": (-0.0053, -0.0001),
        "disc_fin": (-0.0009, -0.0121),
    },
    "alphafin": {
        "llama": (-0.0013,),
        "mistral": (-0.0062,),
        "finma_full": (0.1261,),
        "finma_nlp": (0.0706,),
        "baichuan": (0.0213,),
        "disc_fin": (0.0103,),
        "gpt": (0.0022,),
    },
    "ectsum": {
        "llama": (0.1509, 0),
        "mistral": (-0.0004, 0.0089),
        "finma_full": (0.0382, 0.0216),
        "finma_nlp": (0.0235, -0.0223),
        "baichuan": (0, 0),
        "disc_fin": (0.0276, -0.0147),
        "gpt": (0.0004, 0.0027),
    },
}
"""PCR of the first split minus that of each other one: Tables 2, 5, 7, 9 and 11."""

DECLINES: dict[str, dict[str, tuple[float, ...]]] = {
    "fineval": {
        "llama": (0, 0),
        "mistral": (0, 0),
        "finma_full": (0.0471, 0.0059),
        "finma_nlp": (-0.0471, -0.0417),
        "baichuan": (-0.0177, 0.0235),
        "disc_fin": (0.0588, 0.0443),
        "gpt": (0, -0.0009),
    },
    "finqa": {
        "llama": (-0.0001, -0.0001, -0.0002),
        "mistral": (-0.0011, 0.0004, -0.0004),
        "finma_full": (0.0123, 0.0108, 0.0068),
        "finma_nlp": (0.009, 0.0054, 0),
        "baichuan": (0.0006, -0.0031, 0.0013),
        "disc_fin": (0.0007, -0.0017, -0.0015),
        "gpt": (-0.0008, 0.0011, 0.0001),
    },
    "alphafin": {
        "llama": (-0.0001, 0.0005),
        "mistral": (-0.0015, -0.003),
        "finma_full": (0.034, -0.0047),
        "finma_nlp": (0.0033, 0.0014),
        "baichuan": (0.0022, 0.0049),
        "disc_fin": (0.0006, 0.0009),
        "gpt": (-0.0046, -0.0144),
    },
    "ectsum": {
        "llama": (0.0024, 0.0024, 0.0011),
        "mistral": (0.0052, 0.0032, 0.0032),
        "finma_full": (0.0001, -0.0005, 0.0002),
        "finma_nlp": (-0.0002, -0.0007, -0.0002),
        "baichuan": (0.0024, 0.0017, -0.001),
        "disc_fin": (-0.0015, -0.0004, 0.0008),
        "gpt": (0.0032, -0.0011, 0.001),
    },
}
"""Performance on the original minus that on the modified items, in each split: Table 2."""

DISCREPANCIES: dict[str, dict[str, tuple[float, ...]]] = {
    "fineval": {
        "finma_full": (0.2235,),
        "finma_nlp": (-0.0197,),
        "baichuan": (-0.0935,),
        "disc_fin": (0.0241,),
    },
    "finqa": {
        "llama": (0, 0.0433),
        "mistral": (-0.0701, -0.0327),
        "finma_full": (-0.0611, -0.0093),
        "finma_nlp": (0.0021, 0.0608),
        "baichuan": (0.3814, -0.0891),
        "disc_fin": (0.2162, 0.1763),
        "gpt": (-0.089, -0.0431),
    },
    "alphafin": {
        "llama": (-0.0651,),
        "mistral": (0.0121,),
        "finma_full": (0.0518,),
        "finma_nlp": (0.0031,),
        "baichuan": (-0.032,),
        "disc_fin": (-0.0045,),
        "gpt": (0.0383,),
    },
    "ectsum": {
        "llama": (-0.0095, 0.0356),
        "mistral": (0.0388, 0.0332),
        "finma_full": (0.2917, -0.0453),
        "finma_nlp": (6.8462, 0.028),
        "baichuan": (0.1285, 0.5855),
        "disc_fin": (-0.2771, -0.5402),
        "gpt": (0.0926, 0.0447),
    },
}
"""Relative decline of the first split minus that of each other one: Table 2. Where performance on
the originals is 0 there is none to compute (FinEval: LLaMA, Mistral, GPT)."""

ALPHAS = (0.0, 0.001, 0.01, 0.1)
BY_SCALE: dict[str, dict[str, tuple[float, ...]]] = {
    "tanh": {
        "llama": (0, -0.0002, -0.0023, -0.0165),
        "mistral": (0, -0.0001, -0.0013, -0.0091),
        "finma_full": (-0.0051, -0.0051, -0.0054, -0.0062),
        "finma_nlp": (-0.0245, -0.0246, -0.0255, -0.0264),
        "baichuan": (-0.0389, -0.0388, -0.038, -0.0316),
        "disc_fin": (-0.0398, -0.0397, -0.0389, -0.0325),
        "gpt": (0, 0, -0.0004, -0.0029),
    },
    "linear": {
        "llama": (0, -0.0002, -0.0023, -0.0169),
        "mistral": (0, -0.0001, -0.0013, -0.0094),
        "finma_full": (-0.0078, -0.0079, -0.0084, -0.0107),
        "finma_nlp": (-0.0296, -0.0298, -0.0313, -0.037),
        "baichuan": (-0.0834, -0.0832, -0.0817, -0.069),
        "disc_fin": (-0.0965, -0.0962, -0.0943, -0.0784),
        "gpt": (0, 0, -0.0004, -0.0029),
    },
    "sigmoid": {
        "llama": (0, -0.0001, -0.0006, -0.0042),
        "mistral": (0, 0, -0.0003, -0.0023),
        "finma_full": (-0.0017, -0.0018, -0.0019, -0.0023),
        "finma_nlp": (-0.0071, -0.0071, -0.0074, -0.0085),
        "baichuan": (-0.0169, -0.0169, -0.0166, -0.0139),
        "disc_fin": (-0.0189, -0.0188, -0.0184, -0.0153),
        "gpt": (0, 0, -0.0001, -0.0007),
    },
}
"""FinEval's PCR(dev) - PCR(val) under each scale, over ALPHAS: Table 3."""
