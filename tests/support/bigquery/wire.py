"""BigQuery's REST resources: requests read, answers and errors written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Json = dict[str, Any]
STATUSES = {
    "rateLimitExceeded": 403,
    "quotaExceeded": 403,
    "accessDenied": 403,
    "accessNotConfigured": 403,
    "billingNotEnabled": 403,
    "notFound": 404,
    "duplicate": 409,
    "authError": 401,
    "backendError": 503,
    "internalError": 500,
}
"""HTTP status of each of Google's reasons; 400 for all others."""


@dataclass
class Job:
    """One job, as long as the server remembers it."""

    id: str
    project: str
    config: Json
    state: str = "RUNNING"
    error: Json | None = None
    scanned: int = 0
    billed: int = 0
    fields: list[dict[str, str]] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def resource(self) -> Json:
        """The job as jobs.get shows it."""
        status: Json = {"state": self.state}
        if self.error:
            status |= {"errorResult": self.error, "errors": [self.error]}
        return {
            "kind": "bigquery#job",
            "id": f"{self.project}:US.{self.id}",
            "jobReference": self.reference,
            "configuration": self.config,
            "status": status,
            "statistics": {
                "creationTime": "1780000000000",
                "totalBytesProcessed": str(self.scanned),
                "query": {
                    "statementType": "SELECT",
                    "totalBytesProcessed": str(self.scanned),
                    "totalBytesBilled": str(self.billed),
                    "cacheHit": False,
                },
            },
        }

    @property
    def reference(self) -> Json:
        """What the job is asked for by."""
        return {"projectId": self.project, "jobId": self.id, "location": "US"}

    def page(self, start: int, size: int) -> Json:
        """Return a page of the rows, as jobs.getQueryResults does."""
        some = self.rows[start : start + size]
        end = start + len(some)
        return {
            "kind": "bigquery#getQueryResultsResponse",
            "jobReference": self.reference,
            "jobComplete": True,
            "schema": {"fields": self.fields},
            "totalRows": str(len(self.rows)),
            "rows": [{"f": [{"v": cell(value)} for value in row]} for row in some],
            **({"pageToken": str(end)} if end < len(self.rows) else {}),
        }


def cell(value: object) -> object:
    """Write a value: numbers and times as strings, arrays as objects."""
    if isinstance(value, list):
        return [{"v": cell(item)} for item in value]
    return None if value is None else str(value)


def refusal(reason: str, message: str) -> Json:
    """Return the body of an error."""
    code = STATUSES.get(reason, 400)
    error = {"message": message, "domain": "global", "reason": reason}
    return {"error": {"code": code, "message": message, "errors": [error]}}


def values(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a request's query parameters as Python values."""
    return {
        str(each["name"]): _value(each["parameterType"], each["parameterValue"])
        for each in parameters
    }


def _value(kind: Mapping[str, Any], value: Mapping[str, Any]) -> object:
    if kind["type"] == "ARRAY":
        return [_value(kind["arrayType"], item) for item in value.get("arrayValues", [])]
    if kind["type"] == "STRUCT":
        kinds = {each["name"]: each["type"] for each in kind["structTypes"]}
        return {name: _value(kinds[name], item) for name, item in value["structValues"].items()}
    return _scalar(str(kind["type"]), value["value"])


def _scalar(kind: str, text: str) -> object:
    if kind == "TIMESTAMP":
        return datetime.fromisoformat(text).replace(tzinfo=None)
    if kind == "BOOL":
        return str(text).lower() == "true"
    return {"INT64": int, "FLOAT64": float, "STRING": str}[kind](text)
