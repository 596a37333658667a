"""The rules of Lucene's StandardTokenizer as its grammar states them, with the longest match found by the `regex` module's POSIX mode.

Slow and literal, over strings of classes: the oracle for `segmentation.py`, whose patterns are rewritten so that a backtracking engine finds the longest match.
"""

import regex

from agentir_ray.analysis.segmentation import MAX_TOKEN_UNITS

_EX = "[XxZVPktT]*"
_EMOJI_EX = "[XxZktT]*"


def _grammar() -> str:
    hangul_or_letter, numeric, hebrew, katakana = f"[AUjBgH]{_EX}", f"N{_EX}", f"H{_EX}", f"K{_EX}"
    connector, mid_letter, mid_number = f"_{_EX}", f"[LQS]{_EX}", f"[MQS]{_EX}"
    part = (
        f"(?:{katakana}(?:(?:{connector})*{katakana})*"
        f"|(?:{hebrew}(?:S{_EX}|D{_EX}{hebrew})"
        f"|{numeric}(?:(?:(?:{connector})*|{mid_number}){numeric})*"
        f"|{hangul_or_letter}(?:(?:(?:{connector})*|{mid_letter}){hangul_or_letter})*)+)"
    )
    word = f"(?:{connector})*{part}(?:(?:{connector})+{part})*(?:{connector})*"
    emoji = f"(?:Z*[EeB]{_EMOJI_EX}P?|(?:Z*e{_EMOJI_EX})?m{_EMOJI_EX})"
    sequence = f"{emoji}(?:(?:Z{emoji})*|t+T)"
    keycap = f"[hN]{_EMOJI_EX}P?k{_EMOJI_EX}"
    flag = f"R{_EX}R{_EX}"
    return "|".join((sequence, keycap, flag, word, f"(?:[Cx]{_EX})+", f"[Gg]{_EX}", f"I{_EX}"))


_LONGEST = regex.compile(_grammar(), regex.POSIX)


def spans(classes: str) -> list[tuple[int, int]]:
    """Where words begin and end, for code points of one UTF-16 unit each."""
    found = []
    position = 0
    while position < len(classes):
        match = _LONGEST.match(classes, position, min(position + MAX_TOKEN_UNITS, len(classes)))
        if match and match.end() > position:
            found.append(match.span())
            position = match.end()
        else:
            position += 1
    return found
