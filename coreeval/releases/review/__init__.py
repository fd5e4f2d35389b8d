"""Reviews: the new texts that a person must check before they are published, and why."""

from coreeval.releases.review.review import Review, build_review, load_review

__all__ = ["Review", "build_review", "load_review"]
