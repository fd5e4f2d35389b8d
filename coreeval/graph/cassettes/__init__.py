"""Records a finished run as a cassette, and replays it."""
