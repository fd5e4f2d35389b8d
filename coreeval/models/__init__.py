"""Models of all providers behind one interface, asked through the call store."""

from coreeval.models.activity import CallRef, record_calls
from coreeval.models.answers import InvalidAnswer, OutputSchema, PlainOutput
from coreeval.models.client import ModelClient
from coreeval.models.model import Identity, Model, close_models
from coreeval.models.model_pool import ModelPool, open_model_pool
from coreeval.models.providers import PROVIDERS, open_model, preflight
from coreeval.models.retry import Retry

__all__ = [
    "PROVIDERS",
    "CallRef",
    "Identity",
    "InvalidAnswer",
    "Model",
    "ModelClient",
    "ModelPool",
    "OutputSchema",
    "PlainOutput",
    "Retry",
    "close_models",
    "open_model",
    "open_model_pool",
    "preflight",
    "record_calls",
]
