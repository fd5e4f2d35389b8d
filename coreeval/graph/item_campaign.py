"""The former place of graph/pcr/item_campaign, for commands that still import from here."""

from coreeval.graph.pcr.item_campaign import (
    PARAPHRASE,
    ItemAnswers,
    ItemPlan,
    ask_items,
    build_item_plan,
)

__all__ = ["PARAPHRASE", "ItemAnswers", "ItemPlan", "ask_items", "build_item_plan"]
