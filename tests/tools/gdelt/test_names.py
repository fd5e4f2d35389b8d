from coreeval.tools.gdelt.names import title_names


def test_names_come_from_titles_that_show_them() -> None:
    titles = [
        "Trade talks stall as Elon Musk visits Rotterdam on Friday",
        "Why Elon Musk sold his house on Friday",
        "Shares fall after Elon Musk leaves Rotterdam for good on Friday",
        "In Title Case Elon Musk And Rotterdam Are No Proof",
        "A Turkey farmer shows a wild Turkey how it is done",
        "The Turkey vote was closer than pollsters said",
        "Prices of turkey rose again this winter in Turkey",
    ]
    names = title_names(titles)
    assert names[0] == ("Elon Musk", "Rotterdam")
    assert names[1] == ("Elon Musk",)
    assert names[3] == ()
    assert not any("Turkey" in found or "Friday" in found for found in names)
