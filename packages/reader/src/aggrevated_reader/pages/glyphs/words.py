"""Ways to write the names of functions as one symbol each, with letters close to each other."""

from aggrevated_reader.pages.glyphs import small_letters

WORDS = ("sin", "cos", "tan", "log", "lim")
COUNT = 8  # ways for each word
BETWEEN = 12  # gap between letters, in hundredths of a digit's height


def _make_word_way(word: str, number: int) -> str:
    """Return a way to write the word; the number determines the way of each letter."""
    right = 0.0
    strokes = []
    for index, letter in enumerate(word):
        ways = small_letters.WAYS[letter]
        way = ways[(number * (2 * index + 3) + 5 * index) % len(ways)]
        left = min(_parse_x(point) for point in way.replace("|", " ").split())
        strokes.append(_translate_way(way, right - left))
        right = BETWEEN + max(_parse_x(point) for point in strokes[-1].replace("|", " ").split())
    return " | ".join(strokes)


def _parse_x(point: str) -> float:
    return float(point.partition(",")[0])


def _translate_way(way: str, by: float) -> str:
    """Return the way, shifted to the right."""
    items = (item if item == "|" else f"{_parse_x(item) + by:g},{item.partition(',')[2]}" for item in way.split())
    return " ".join(items)


WAYS: dict[str, tuple[str, ...]] = {
    word: tuple(dict.fromkeys(_make_word_way(word, number) for number in range(COUNT))) for word in WORDS
}
