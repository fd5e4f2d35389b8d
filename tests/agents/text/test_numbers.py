import pytest

from coreeval.agents.text.numbers import find_missing_numbers, find_numbers, find_source_numbers


def readings(text: str) -> list[set[str]]:
    return [set(number.readings) for number in find_numbers(text)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("$4,500 and 1.50 percent", [{"4500"}, {"1.5"}]),
        ("6 billion", [{"6000000000"}]),
        ("$6bn", [{"6000000000"}]),
        ("a 5m pool", [{"5", "5000000"}]),
        ("the 3rd and 10th", [{"3"}, {"10"}]),
        ("twenty-five people", [{"25"}]),
        ("two hundred and five", [{"205"}]),
        ("one million two hundred thousand", [{"1200000"}]),
        ("a third", [{"3"}]),
        ("one third", [{"3"}]),
        ("at 8:30 pm", [{"8:30"}]),
        ("one of the first millions", []),
        ("@user2 #2016 G20", []),
        ("COVID-19 in 2020", [{"19"}, {"2020"}]),
        ("No.1 at $.50", [{"1"}, {"0.5"}]),
        ("24/7", [{"24"}, {"7"}]),
        ("In 1999 hundreds of whales washed up", [{"1999"}]),
        ("By 2020 millions had left", [{"2020"}]),
        ("5 hundred of 200 millions", [{"500"}, {"200000000"}]),
        ("1,500 millions", [{"1500000000"}]),
    ],
)
def test_numbers_are_read_as_values(text: str, values: list[set[str]]) -> None:
    assert readings(text) == values


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("six billion dollars", "$6bn deal"),
        ("1.5 \u00b0C", "the limit of 1. 5 \u00b0C"),
        ("4,500", "$4, 500 gold"),
        ("2.7 \u00b0F warmer", "1.5 \u00b0C warmer"),
        ("104 degrees Fahrenheit", "40 degrees Celsius"),
        ("50 miles", "80 km"),
        ("26,000 feet", "8 km up"),
        ("about 25 acres", "10 hectares"),
        ("5 metres", "a 5m wall"),
        ("10 million acres", "4 million hectares"),
        ("washed up in 1999", "In 1999 hundreds of gray whales washed up"),
    ],
)
def test_a_number_is_supported_in_other_spelling_or_unit(text: str, source: str) -> None:
    assert find_missing_numbers(text, find_source_numbers([source])) == []


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("$6 billion", "$6.2 billion"),
        ("$6 million", "$6 billion"),
        ("3.7 \u00b0F", "1.5 \u00b0C"),
        ("60 miles", "80 km"),
        ("80 kilometres", "80 miles"),
        ("five pounds", "5.1 km"),
        ("2027", "in 2026"),
    ],
)
def test_another_number_is_missing(text: str, source: str) -> None:
    assert len(find_missing_numbers(text, find_source_numbers([source]))) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("an insult 2 the left", []),
        ("waiting 4 you", []),
        ("2 rockets launch", ["2"]),
        ("$4 the litre", ["4"]),
        ("love you two", []),
        ("Adani and Google are partners. The two are to build it", []),
        ("the two plants", ["two"]),
        ("comparing the two is no help", []),
        ("He is in two minds about it", []),
        ("two great minds", ["two"]),
        ("two of us", ["two"]),
        ("4 in all", ["4"]),
    ],
)
def test_figures_that_stand_for_words_are_no_numbers(text: str, found: list[str]) -> None:
    assert [number.text for number in find_numbers(text)] == found


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("1" * 250_000, "en"),
        ("1" * 250_000, "de"),
        ("two " + "million " * 3000, "en"),
        ("zwei " + "tausend " * 3000, "de"),
        ("dos " + "mil " * 3000, "es"),
        ("1" + " mil" * 60_000, "es"),
    ],
    ids=["digits", "german digits", "words", "german words", "spanish words", "scales"],
)
def test_a_number_without_end_supports_only_itself(text: str, language: str) -> None:
    (number,) = find_numbers(text, language)
    assert number.readings == {number.text.casefold()}
    assert find_missing_numbers(text, find_numbers(text, language), language) == []
    assert find_missing_numbers(text, find_numbers("2", language), language) == [number]


@pytest.mark.parametrize("language", ["de", "es"])
@pytest.mark.parametrize(
    "text", ["1.234,567.89", "1,234.567,891", "\u0663.\u0664\u0665\u0666,\u0667\u0668\u0669.\u0661"]
)
def test_a_number_with_marks_in_no_known_order_is_read_without_them(
    text: str, language: str
) -> None:
    (number,) = find_numbers(text, language)
    (reading,) = number.readings
    assert reading.isdigit() and int(reading) > 10**6
