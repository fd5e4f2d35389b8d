"""Sessions of requests that go where they are sent and nowhere else."""

import requests


class Straight:
    """Mixed into a session, lets no answer lead to another address: a redirect is an answer."""

    def get_redirect_target(self, _answer: requests.Response) -> None:
        """Return that an answer leads nowhere."""
        return


class StraightSession(Straight, requests.Session):
    """A session that follows no redirect."""
