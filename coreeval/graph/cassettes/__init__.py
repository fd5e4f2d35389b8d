"""Recording a finished run as a cassette, and repeating it from there."""
