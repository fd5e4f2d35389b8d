"""What a run does, as spans by OpenInference's conventions, for collectors of OpenTelemetry's."""

from coreeval.graph.telemetry.opening import check_telemetry, listened_to

__all__ = ["check_telemetry", "listened_to"]
