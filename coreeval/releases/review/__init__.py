"""A person's yes: which new texts somebody must look at before they are published, and why."""

from coreeval.releases.review.decided import Review, decided, review_of

__all__ = ["Review", "decided", "review_of"]
