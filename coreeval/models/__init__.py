"""Models behind one seam: `provider:name` is opened, asked through the call store, and closed."""

from coreeval.models.asker import Asker
from coreeval.models.calls import CallRef, record_calls
from coreeval.models.connections import close_models
from coreeval.models.exchange import Exchange, open_exchange
from coreeval.models.model import Identity, Model
from coreeval.models.preflight import preflight
from coreeval.models.providers import PROVIDERS, open_model
from coreeval.models.retry import Retry
from coreeval.models.shapes import AnswerShape, InvalidAnswer, PlainShape

__all__ = [
    "PROVIDERS",
    "AnswerShape",
    "Asker",
    "CallRef",
    "Exchange",
    "Identity",
    "InvalidAnswer",
    "Model",
    "PlainShape",
    "Retry",
    "close_models",
    "open_exchange",
    "open_model",
    "preflight",
    "record_calls",
]
