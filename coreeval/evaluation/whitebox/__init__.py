"""Tests that train a model's weights and read its probabilities.

Models are loaded by `coreeval.models.local_model`; only that, `generation` and `training` import
torch, each inside its functions.
"""
