"""Spans for collectors of OpenTelemetry's: as values, where they go, and how they get there."""
