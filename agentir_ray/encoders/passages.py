"""Long texts as overlapping passages that a model reads whole.

Cutting knows no tokenizer, only where each token lies in the text, and keeps the characters of the original. Every character is in a passage, and a passage has at most
`window` tokens of the whole text's. A cut falls between words where there is a space among the tokens that may overlap, so that a passage, tokenized by itself, has the same
tokens again.
"""

from collections.abc import Sequence


def bounds(text: str, offsets: Sequence[tuple[int, int]], window: int, overlap: int) -> list[tuple[int, int]]:
    """The (begin, end) of each passage. `offsets` has those of each token, in order; `overlap` < `window` is how many tokens passages share, up to twice as many."""
    found = []
    first = last = begin = 0
    while len(offsets) - first > window:
        last = _at_word(text, offsets, first + window, max(first + window - overlap, last + 1))
        found.append((begin, offsets[last][0]))
        first = max(first + 1, _at_word(text, offsets, last - overlap, last - 2 * overlap)) if overlap else last
        begin = offsets[first][0]
    return [*found, (begin, len(text))]


def cut(text: str, offsets: Sequence[tuple[int, int]], window: int, overlap: int) -> list[str]:
    """The passages themselves."""
    return [text[begin:end] for begin, end in bounds(text, offsets, window, overlap)]


def _at_word(text: str, offsets: Sequence[tuple[int, int]], token: int, least: int) -> int:
    """The last token up to `token`, from `least` on, that begins a word; `token` itself where there is none."""
    for candidate in range(token, max(least, 1) - 1, -1):
        begin = offsets[candidate][0]
        if text[begin].isspace() or text[begin - 1].isspace():
            return candidate
    return token


def cut_characters(text: str, window: int, overlap: int) -> list[str]:
    """The same by characters, for a model that does not tell its tokens."""
    return cut(text, [(at, at + 1) for at in range(len(text))], window, overlap)
