"""One sample: its texts word by word, what replaced what, and all that was done and said."""

from math import ceil

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from coreeval import meanings
from coreeval.releases.opening import opened_calls
from coreeval.tools.stores.run_queries import Neighbours
from coreeval.viewer import telling
from coreeval.viewer.addresses import run_url, sample_of
from coreeval.viewer.hiding import hidden
from coreeval.viewer.list_view import PAGE, ListView
from coreeval.viewer.opening import OpenRun, opened
from coreeval.viewer.rendering import page
from coreeval.viewer.story import sample_story
from coreeval.viewer.story_values import SampleStory


def show(request: Request) -> Response:
    """Show a sample, between its neighbours in the list that it was opened from."""
    hide = request.app.state.hide_texts
    view = ListView.of(request.query_params, hide_texts=hide)
    with opened(request) as run:
        story = _story(run, sample_of(request))
        near = run.store.listing.neighbours(
            story.sample.id, view.chosen, sort=view.sort, descending=view.descending
        )
    return page(
        request,
        "sample.html",
        run=run,
        story=hidden(story) if hide else story,
        near=near,
        view=view,
        up=_list_url(run.key, view, near),
        telling=telling,
        meanings=meanings,
    )


def _list_url(key: str, view: ListView, near: Neighbours) -> str:
    """Return the address of the page of the list that the sample stands on."""
    query = view.at(ceil((near.position or 1) / PAGE))
    return run_url(key, "samples") + (f"?{query}" if query else "")


def _story(run: OpenRun, sample_id: str) -> SampleStory:
    with opened_calls(run.manifest) as calls:
        try:
            return sample_story(run.store, calls, sample_id, prompts=run.manifest.prompts)
        except KeyError:
            raise HTTPException(404, f"The run has no sample {sample_id!r}.") from None
