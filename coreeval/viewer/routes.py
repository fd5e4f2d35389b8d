"""Which address shows which page: one line for each."""

from starlette.routing import Route

from coreeval.viewer.pages import compare, detection, run, runs, sample, samples

ROUTES: tuple[Route, ...] = (
    Route("/", runs.show),
    Route("/compare", compare.show),
    Route("/run/{key}", run.show),
    Route("/run/{key}/live", run.live),
    Route("/run/{key}/samples", samples.show),
    Route("/run/{key}/sample/{id:path}", sample.show),
    Route("/run/{key}/detection", detection.show),
    Route("/run/{key}/report", run.report),
)
