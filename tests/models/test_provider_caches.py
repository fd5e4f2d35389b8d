"""The caches that stand in for the providers' in benchmarks/prefix_cache.py."""

import pytest

from benchmarks.provider_caches import BlockCache, MarkedCache, Prompt, Served


def prompt(
    shared: int, own: int, *, who: int = 0, key: str = "", marks: tuple[int, ...] = ()
) -> Prompt:
    """Return a prompt that begins as others do and ends as no other."""
    tokens = [*range(shared), *(f"{who}:{at}" for at in range(own))]
    return Prompt(tokens=tokens, marks=marks, key=key)


@pytest.mark.parametrize(
    ("first", "step", "shared", "found"),
    [(1024, 128, 1023, 0), (1024, 128, 1024, 1024), (1024, 128, 1400, 1280), (16, 16, 1023, 1008)],
)
def test_the_longest_beginning_counts_in_steps(
    first: int, step: int, shared: int, found: int
) -> None:
    cache = BlockCache(first=first, step=step, answers_after_s=0)
    assert cache.serve(prompt(shared, 2000, who=1), 0) == Served(0)
    assert cache.serve(prompt(shared, 2000, who=2), 1) == Served(found)


def test_a_prompt_is_found_only_after_its_answer_has_begun() -> None:
    block = BlockCache(first=16, step=16, answers_after_s=2)
    marked = MarkedCache(fewest=16, lasts_s=300, answers_after_s=2)
    found = [
        (
            block.serve(prompt(32, 8, who=at), at),
            marked.serve(prompt(32, 8, who=at, marks=(32,)), at),
        )
        for at in range(3)
    ]
    assert found == [
        (Served(0), Served(0, 32)),
        (Served(0), Served(0, 32)),
        (Served(32), Served(32)),
    ]


def test_more_requests_of_a_key_than_one_machine_takes_go_on_to_another() -> None:
    cache = BlockCache(first=16, step=16, answers_after_s=0, per_minute=15)
    found = [cache.serve(prompt(16, 0, key="a"), 0).cached for _ in range(33)]
    assert [at for at, cached in enumerate(found) if not cached] == [0, 15, 32]
    assert cache.serve(prompt(16, 0, key="b"), 0) == Served(0), "another key, another machine"
    assert cache.serve(prompt(16, 0, key="a"), 61) == Served(16)


def test_without_a_mark_at_its_end_a_shared_beginning_is_not_found() -> None:
    cache = MarkedCache(fewest=1024, lasts_s=300, answers_after_s=0)
    for at in range(2):
        whole = prompt(2000, 50, who=at, marks=(2050,))
        assert cache.serve(whole, at) == Served(0, 2050)
    assert cache.serve(prompt(2000, 50, who=2, marks=(2000, 2050)), 2) == Served(0, 2050)
    assert cache.serve(prompt(2000, 50, who=3, marks=(2000, 2050)), 3) == Served(2000, 50)


def test_what_is_marked_is_forgotten_some_time_after_its_last_use() -> None:
    cache = MarkedCache(fewest=1024, lasts_s=300, answers_after_s=0)
    assert cache.serve(prompt(1024, 9, marks=(1024,)), 0) == Served(0, 1024)
    assert cache.serve(prompt(1024, 9, marks=(1024,)), 299) == Served(1024)
    assert cache.serve(prompt(1024, 9, marks=(1024,)), 598) == Served(1024)
    assert cache.serve(prompt(1024, 9, marks=(1024,)), 899) == Served(0, 1024)
    assert cache.serve(prompt(1023, 9, marks=(1023,)), 900) == Served(0)
