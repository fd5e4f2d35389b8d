"""Tests of the checks that need no model."""
