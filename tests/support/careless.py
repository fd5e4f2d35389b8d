"""Answers with slips, always the same ones: so that there are retries, re-asks and rejections."""

import json
import zlib

from tests.support.answers import OfflineAnswers
from tests.support.llm_server import Reply, Request
from tests.support.wire import LastTry, Prompted


class Careless:
    """Gives the rules' answers, some of them spoilt at the first try and well at the next."""

    def __init__(self, answers: OfflineAnswers) -> None:
        self._answers = answers

    async def __call__(self, request: Request) -> str | Reply:
        """Answer a request; what is asked again with a complaint is answered well."""
        answer = await self._answers(request)
        prompted = Prompted(request)
        chance = zlib.crc32(prompted.user.encode())
        if prompted.is_asked_again or not isinstance(answer, str):
            return answer
        match prompted.shape:
            case "composition" if chance % 2 == 0 and _is_first_text(prompted):
                return _invented(answer)
            case "plan_and_text" if chance % 2 == 0 and _is_use(answer):
                return _invented(answer)
            case "plan" if chance % 5 == 0:
                return answer.replace('"quote": "', '"quote": "Nobody said that ')
            case "label" if chance % 7 == 0:
                return f"I would say: {answer}"
            case "rewrite" if chance % 9 == 0:
                return Reply(content=answer[: len(answer) // 2], finish_reason="length")
        return answer


def _is_first_text(prompted: Prompted) -> bool:
    return prompted.block("feedback", LastTry).previous is None


def _is_use(answer: str) -> bool:
    return bool(json.loads(answer)["decision"] == "use")


def _invented(answer: str) -> str:
    """Return a composition with a number that no news has."""
    said = json.loads(answer)
    texts = {name: f"{text} That makes 8412." for name, text in said["fields"].items()}
    return json.dumps(said | {"fields": texts})
