"""A person's yes: which new texts somebody must look at before they are published, and why."""

from coreeval.releases.review.review import Review, build_review, load_review

__all__ = ["Review", "build_review", "load_review"]
