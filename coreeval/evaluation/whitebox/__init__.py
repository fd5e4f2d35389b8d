"""Tests that need the weights of a model: they load it, train it and read its probabilities.

Only `local_model` and `training` import torch, each inside its functions.
"""
