"""A server that was named leads elsewhere: nobody is asked whom the user has not named."""

import httpx2
import pytest

from coreeval.errors import DatasetError, UsageError
from coreeval.evaluation.numleak.series.catalogue import fetch
from coreeval.tools.gdelt.doc.replies import open_wire
from coreeval.tools.gdelt.sync.downloads import normalise_mirror_url
from coreeval.tools.http import LedElsewhere, to_public_stores, to_same_host
from tests.support.lures import bystander, lure


def test_a_series_is_not_fetched_from_another_host() -> None:
    with bystander() as aside, lure(f"{aside.url}/x") as named:
        with pytest.raises(DatasetError, match=r"it redirects to http://127\.0\.0\.1:") as caught:
            fetch(f"{named.url}/x.csv", hint="h")
        assert caught.value.where == f"{named.url}/x.csv"
        assert len(named.asked) == 1 and aside.asked == []


async def test_doc_leads_nowhere() -> None:
    with bystander() as aside, lure(aside.url, 302) as named:
        async with open_wire(named.url) as wire:
            assert (await wire.get({"query": "x"}, 10)).status == 302
        assert aside.asked == []


def led(check: object, url: str, **headers: str) -> bool:
    assert callable(check)
    try:
        check(httpx2.Request("GET", url, headers=headers))
    except LedElsewhere:
        return True
    return False


def test_a_host_may_lead_to_itself_and_to_its_better_protocol() -> None:
    check = to_same_host("http://a.example/x")
    assert not led(check, "http://a.example/y")
    assert not led(check, "https://a.example/y")
    assert led(check, "http://a.example:81/y")
    assert led(check, "http://b.example/x")
    assert led(to_same_host("https://a.example/x"), "http://a.example/x")


@pytest.mark.parametrize(
    "url",
    [
        "http://store.example/x",
        "https://127.0.0.1/x",
        "https://127.1/x",
        "https://2130706433/x",
        "https://169.254.169.254/latest",
        "https://10.0.0.1/x",
        "https://[::1]/x",
        "https://[::ffff:127.0.0.1]/x",
        "https://localhost/x",
        "https://a.localhost./x",
        "https://metadata.google.internal/x",
    ],
)
def test_a_hub_does_not_lead_into_a_network(url: str) -> None:
    assert led(to_public_stores("https://hub.example"), url)


def test_a_hub_leads_to_public_stores_without_its_token() -> None:
    check = to_public_stores("https://hub.example")
    assert not led(check, "https://hub.example/x", authorization="Bearer t")
    assert not led(check, "https://store.example/x")
    assert led(check, "https://store.example/x", authorization="Bearer t")
    assert not led(to_public_stores("http://127.0.0.1:8080"), "http://127.0.0.1:8080/x")


@pytest.mark.parametrize("url", ["http://[::", "file:///etc", "//x", "https://"])
def test_what_is_no_address_of_a_mirror_is_told(url: str) -> None:
    with pytest.raises(UsageError, match="not an address of"):
        normalise_mirror_url(url)


@pytest.mark.parametrize("url", ["https://u:s3cret@m.example", "https://m.example?key=s3cret"])
def test_a_mirrors_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="must not contain a password or a query") as caught:
        normalise_mirror_url(url)
    assert "s3cret" not in str(caught.value)
