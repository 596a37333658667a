"""The part of a text that shows why it was found, short enough for a table's cell."""

import re

from rich.text import Text

from agentir_ray.cli.console import clean

WIDTH = 240
_WORD = re.compile(r"\w+")
_SHORTEST = 3  # shorter words of the question are mostly articles and auxiliaries


def snippet(text: str, query: str = "", width: int = WIDTH) -> Text:
    """At most `width` characters around the first word of `query` that `text` holds, its words in bold. A reading aid: the analyzer decides what matches, not this."""
    line = clean(text).strip()
    words = {word.casefold() for word in _WORD.findall(query) if len(word) >= _SHORTEST or not word.isascii()}
    found = [match.span() for match in _WORD.finditer(line) if match.group().casefold() in words]
    start = 0
    if len(line) > width and found:
        start = max(0, min(found[0][0] - width // 4, len(line) - width))
    end = min(len(line), start + width)
    result = Text(("…" if start else "") + line[start:end] + ("…" if end < len(line) else ""))
    shift = (1 if start else 0) - start
    for begin, stop in found:
        if start <= begin and stop <= end:
            result.stylize("bold", begin + shift, stop + shift)
    return result
