"""GKG's themes that topics are looked up by."""

THEMES = {
    "climate change": "ENV_CLIMATECHANGE",
    "immigration": "IMMIGRATION",
    "inflation": "ECON_INFLATION",
    "natural disaster": "NATURAL_DISASTER",
    "natural gas": "ENV_NATURALGAS",
    "oil price": "ECON_OILPRICE",
    "refugees": "REFUGEES",
    "stock market": "ECON_STOCKMARKET",
    "unemployment": "UNEMPLOYMENT",
}
"""The theme of topics that have these words; all of them occur in real rows."""
