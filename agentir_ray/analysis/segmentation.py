"""Words of a text by UAX #29, exactly as Lucene's StandardTokenizer (9.x) finds them.

It knows classes of code points and nothing of languages: what a word is turned into is decided by the analyzers. Three things make it equal to the scanner that JFlex generates
there:

- At each position every rule is tried and the longest match wins. The alternatives below are ordered and guarded so that each rule by itself finds its longest match; `RULES`
  says which rules can start at a class, and the longest of those is taken. A position where none matches is skipped.
- A token is at most 255 UTF-16 units: the scanner sees a window of that size from where it stands, finds its longest match in it, and goes on behind it.
- Marks (Extend, Format, joiners) belong to the character before them (WB4) and start no word.

The window also bounds the work: time is linear in the text, whatever it holds. No token spans a code point of class O, so cutting a text at those and joining the tokens
changes nothing.

Source: https://unicode.org/reports/tr29/ (word boundaries, with ideographs and hiragana one by one and runs of South East Asian scripts whole),
https://unicode.org/reports/tr51/ (emoji).
"""

import re
from collections.abc import Iterator

MAX_TOKEN_UNITS = 255

_MARKS = "[XxZVPktT]*+"
_EMOJI_MARKS = "[XxZktT]*"  # without the presentation selectors, which have a place of their own


def _word() -> str:
    """WB5 to WB13b: letters and digits, joined directly, by what may stand between two of a kind, or by connectors such as the underscore."""
    letter, digit, hebrew, katakana = (classes + _MARKS for classes in ("[AUjBgH]", "N", "H", "K"))
    connectors = f"(?:_{_MARKS})"
    # A Hebrew letter may keep a single quote behind it, or a double quote between it and the next one. Only one that is not reached over a MidLetter may, hence the guard.
    quoted = f"{hebrew}(?:S{_MARKS}|D{_MARKS}{hebrew})"
    letters = f"{letter}(?:(?!{quoted}){letter}|[LQS]{_MARKS}{letter})*+"
    digits = f"{digit}(?:(?:[MQS]{_MARKS})?{digit})*+"
    core = f"(?:(?:{katakana})++|(?:{quoted}|{digits}|{letters})++)"
    return f"{connectors}*+{core}(?:{connectors}++{core})*{connectors}*+"


def _emoji() -> str:
    """An emoji with its skin tone and presentation, a sequence of them over joiners, one with tags (flags of regions), a keycap, or a flag."""
    marks = _EMOJI_MARKS
    plain = f"[EeB]{marks}"
    toned = f"(?:e{marks})?m{marks}"
    # A joiner is also a mark: whether it joins is decided by what follows it, so the greedy marks give it back.
    joined = f"(?:{plain}PZ(?:Z*(?=[EeB])|(?=m))|{plain}Z(?=[EeBm])|{toned}Z(?=[EeBm]))"
    sequence = f"{joined}*(?:{toned}|{plain}P?)"
    start = "(?:Z*+(?=[EeB])|(?=m))"
    return f"{start}(?:{plain}Pt+T|{sequence})|h{marks}P?k{marks}|R{_MARKS}R{_MARKS}"


WORD = re.compile(_word())
EMOJI = re.compile(_emoji())
UNBROKEN = re.compile("[Cx][CXxZVPktT]*")
SINGLE = re.compile(f"[GgI]{_MARKS}")

# Rules that can start with a class. Where one always matches at least as much as another (WORD and SINGLE at "g", WORD and a keycap at a digit), the other is left out.
RULES = {
    **dict.fromkeys("AUjHgNK_", (WORD,)),
    "B": (WORD, EMOJI),
    **dict.fromkeys("EemhRZ", (EMOJI,)),
    **dict.fromkeys("Cx", (UNBROKEN,)),
    **dict.fromkeys("GI", (SINGLE,)),
}

# Connectors that no letter, digit or mark follows; joiners that no emoji follows.
_DEAD_RUN = re.compile("_++(?![XxZVPktTAUjBgHNK])|Z++(?![EeB])")
_DEAD_RUN_WINDOW = 4 * MAX_TOKEN_UNITS

GRAMMAR = "\n".join(rule.pattern for rule in (WORD, EMOJI, UNBROKEN, SINGLE)) + f"\n{MAX_TOKEN_UNITS}"


def word_spans(text: str, classes: str, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Where the words of `text[start:end]` begin and end; `classes` is the text translated by a class table."""
    position = start
    last = len(classes) if end is None else end
    while position < last:
        rules = RULES.get(classes[position])
        limit = 0
        if rules is not None:
            limit = _longest(rules, classes, position, min(position + MAX_TOKEN_UNITS, last))
            if limit - position > MAX_TOKEN_UNITS // 2:
                window = _window(text, position, min(position + MAX_TOKEN_UNITS, last))
                if window < limit:
                    limit = _longest(rules, classes, position, window)
        if limit > position:
            yield position, limit
            position = limit
        else:
            position = position + 1 if rules is None else _behind_dead_run(classes, position, last)


def _behind_dead_run(classes: str, position: int, last: int) -> int:
    """Where to go on when no word starts at `position`: behind the run of connectors or joiners that it begins, if none starts in it at all.

    This changes no result. It keeps a line drawn with underscores from being read once for each of them.
    """
    end = min(position + _DEAD_RUN_WINDOW, last)
    run = _DEAD_RUN.match(classes, position, end)
    if run is None:
        return position + 1
    # At the end of the window the run may go on to a word, which then reaches back at most one token.
    return run.end() if run.end() < end or end == last else end - MAX_TOKEN_UNITS


def _longest(rules: tuple[re.Pattern[str], ...], classes: str, position: int, end: int) -> int:
    """End of the longest match of any rule at `position`, or 0."""
    return max(match.end() if (match := rule.match(classes, position, end)) else 0 for rule in rules)


def _window(text: str, position: int, end: int) -> int:
    """How far 255 UTF-16 units reach from `position`: a code point above U+FFFF takes two, and is never cut."""
    units = 0
    for index in range(position, end):
        units += 1 if text[index] <= "\uffff" else 2
        if units > MAX_TOKEN_UNITS:
            return index
    return end
