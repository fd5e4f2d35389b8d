"""Endpoints that speak Anthropic's messages."""
