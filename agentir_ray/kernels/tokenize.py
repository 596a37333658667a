"""Many texts at once into words and counted terms: a scan of their UTF-8 bytes that makes no object a token.

It knows bytes and the word rules of UAX #29 as far as ASCII goes (`analysis.segmentation` has all of them), not what a word is turned into: each distinct word gets a number, and
what the analyzer made of that word is looked up by it. Words are told apart by all their bytes; a hash only says where to look.

A text is cut at ASCII characters that belong to no word, which changes no token, and around ideographs, where the analyzer takes each by itself: between them and what cannot
belong to them the rules always break. A piece that holds a byte beyond ASCII is one word here, for the analyzer to divide; a text with such a piece of more than `LONGEST_PIECE`
bytes is left to the analyzer whole.
"""

from typing import Any

import numba
import numpy as np

from agentir_ray.kernels.hashing import _OFFSET_BASIS, _PRIME, same_bytes
from agentir_ray.kernels.signatures import INT, READ_I32, READ_I64, READ_U8, WRITE_I32, WRITE_I64, WRITE_U8, WRITE_U64, together

# What a byte may do in a word, as bits: `LETTER` and `DIGIT` are cores, and the same bits two places to the left say between two of which it may stand.
LETTER, DIGIT = 1, 2
JOINS_LETTERS, JOINS_DIGITS = LETTER << 2, DIGIT << 2
CONNECTOR = 16
APART = 32  # belongs to no word, and may be cut at
BEYOND_ASCII = 64
_CORE = LETTER | DIGIT

LONGEST_WORD = 255
SHORT = 8
LONGEST_PIECE = 64  # bytes: longer pieces, such as paragraphs of Chinese, would not come back
_LONG = np.uint64(1 << 63)
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
NO_WORD = -1  # the one token of a text that is left to the analyzer


@numba.njit(cache=True, nogil=True)
def _key_of(data: Any, first: Any, end: Any) -> Any:
    """What a word is looked up by: its bytes, where it is ASCII and at most 8 of them; else a hash, which differs from all those in its highest bit."""
    key = np.uint64(0)
    h = _OFFSET_BASIS
    beyond = np.uint64(0)
    place, size = np.uint64(first), np.uint64(end - first)
    for j in range(size):
        byte = np.uint64(data[place + np.uint64(j)])
        beyond |= byte
        key = key << np.uint64(8) | byte
        if j & np.uint64(7) == np.uint64(7):
            h = (h ^ key) * _PRIME
            h ^= h >> np.uint64(29)
    return key if size <= np.uint64(SHORT) and beyond < np.uint64(128) else (h ^ key) * _PRIME | _LONG


@numba.njit(cache=True, nogil=True)
def _number_of(data: Any, first: Any, end: Any, key: Any, slots: Any, word_start: Any, word_data: Any, words: Any) -> Any:
    """The number of the word data[first:end], whose key is `key`; a new word gets the number `words`."""
    mask = np.uint64(len(slots) - 2)
    place = _place(key, mask)
    while slots[place + np.uint64(1)] != np.uint64(0):
        if slots[place] == key:
            number = np.int64(slots[place + np.uint64(1)]) - 1
            if key < _LONG:
                return number
            at = word_start[number]
            if word_start[number + 1] - at == end - first and same_bytes(word_data, at, data, first, end - first):
                return number
        place = (place + np.uint64(2)) & mask
    at = word_start[words]
    for j in range(end - first):
        word_data[at + j] = data[first + j]
    word_start[words + 1] = at + end - first
    slots[place] = key
    slots[place + np.uint64(1)] = np.uint64(words + 1)
    return words


@numba.njit(cache=True, nogil=True)
def _place(key: Any, mask: Any) -> Any:
    h = key * _SPREAD
    return (h ^ h >> np.uint64(32)) & mask


@numba.njit(cache=True, nogil=True)
def _scan(data: Any, first: Any, last: Any, classes: Any, slots: Any, word_start: Any, word_data: Any, words: Any, token: Any, at: Any) -> Any:
    """Write the words of the ASCII text data[first:last] to token[at:]; returns (words known, the place behind the last token)."""
    one, eight = np.uint64(1), np.uint64(8)
    i, last = np.uint64(first), np.uint64(last)  # unsigned, so that no index is checked for being negative
    while i < last:
        what = classes[data[i]]
        begin = i
        if what & CONNECTOR:
            while i < last and classes[data[i]] & CONNECTOR:
                i += one
            if i == last or not classes[data[i]] & _CORE:
                continue  # connectors alone are no word
            if i - begin >= np.uint64(LONGEST_WORD):
                begin = i - np.uint64(LONGEST_WORD - 1)
        elif not what & _CORE:
            i += one
            continue
        end = min(begin + np.uint64(LONGEST_WORD), last)
        key = np.uint64(0)
        j = begin
        while j < i:
            key = key << eight | np.uint64(data[j])
            j += one
        while True:  # i is at a letter or digit
            kind = what = classes[data[i]]
            while what & _CORE:
                kind = what
                key = key << eight | np.uint64(data[i])
                i += one
                if i == end:
                    break
                what = classes[data[i]]
            if i == end or what & APART:
                break
            if what & CONNECTOR:
                while i < end and classes[data[i]] & CONNECTOR:
                    key = key << eight | np.uint64(data[i])
                    i += one
                if i < end and classes[data[i]] & _CORE:
                    continue
                break
            if what >> 2 & kind and i + one < end and classes[data[i + one]] & kind:
                key = key << eight | np.uint64(data[i])
                i += one
                continue
            break
        if i - begin > np.uint64(SHORT):
            key = _key_of(data, begin, i)
        number = _number_of(data, np.int64(begin), np.int64(i), key, slots, word_start, word_data, words)
        words = max(words, number + 1)
        token[at] = number
        at += 1
    return words, at


@numba.njit(cache=True, nogil=True)
def _is_ascii(data: Any) -> Any:
    beyond = np.uint8(0)
    for j in range(len(data)):
        beyond = np.uint8(beyond | data[j])
    return beyond < 128


@numba.njit(cache=True, nogil=True)
def _is_ideograph(data: Any, i: Any, last: Any) -> Any:
    """Whether the character at i is one of U+4E00 to U+9FFF: three bytes, which break from whatever comes before."""
    return i + 3 <= last and ((data[i] == 0xE4 and data[i + 1] >= 0xB8) or 0xE5 <= data[i] <= 0xE9)


@numba.njit(cache=True, nogil=True)
def _breaks_from_ideograph(data: Any, i: Any, last: Any) -> Any:
    """Whether the character at i surely starts a word of its own, or none, behind an ideograph: no mark or joiner, which would belong to it."""
    if i >= last or data[i] < 128 or _is_ideograph(data, i, last):
        return True
    if i + 3 > last:
        return False
    # U+3000 to U+3029, the punctuation of ideographs; U+FF00 to U+FF5E, ASCII in their width; U+2010 to U+2027, dashes and quotation marks.
    return (
        (data[i] == 0xE2 and data[i + 1] == 0x80 and 0x90 <= data[i + 2] <= 0xA7)
        or (data[i] == 0xE3 and data[i + 1] == 0x80 and data[i + 2] <= 0xA9)
        or (data[i] == 0xEF and data[i + 1] == 0xBC)
        or (data[i] == 0xEF and data[i + 1] == 0xBD and data[i + 2] <= 0x9E)
    )


@numba.njit(cache=True, nogil=True)
def _end_of_piece(data: Any, begin: Any, last: Any, classes: Any, ideographs: Any) -> Any:
    """Where the piece that begins here ends."""
    if ideographs and _is_ideograph(data, begin, last) and _breaks_from_ideograph(data, begin + 3, last):
        return begin + 3
    i = begin
    while i < last and not classes[data[i]] & APART and not (ideographs and i > begin and _is_ideograph(data, i, last)):
        i += 1
    return i


@numba.njit(
    [together((INT, INT))(READ_U8, READ_I64, INT, READ_U8, numba.boolean, WRITE_U64, WRITE_I64, WRITE_U8, INT, WRITE_I64, WRITE_I32)],
    cache=True,
    nogil=True,
)
def scan_texts(data: Any, start: Any, text: Any, classes: Any, ideographs: Any, slots: Any, word_start: Any, word_data: Any, words: Any, token_start: Any, token: Any) -> Any:
    """Number the words of the texts data[start[i]:start[i + 1]] from text number `text` on, as token[token_start[i]:token_start[i + 1]].

    Returns (the first text that was not done, the number of known words). It stops before a text for which `slots` (a key and a word's number + 1 each; a power of two, and
    twice as many as words), word_start or word_data may have no room. `token` holds a place for every second byte of `data` and one a text. token_start[text] is given.
    `ideographs`: whether each is a word by itself.
    """
    while text < len(start) - 1:
        first, last = start[text], start[text + 1]
        most = words + (last - first + 1) // 2
        if 4 * most > len(slots) or most >= len(word_start) or word_start[words] + last - first > len(word_data):
            break
        at = token_start[text]
        if _is_ascii(data[first:last]):
            words, at = _scan(data, first, last, classes, slots, word_start, word_data, words, token, at)
        else:
            i = first
            while i < last:
                begin = i
                i = _end_of_piece(data, begin, last, classes, ideographs)
                if _is_ascii(data[begin:i]):
                    words, at = _scan(data, begin, i, classes, slots, word_start, word_data, words, token, at)
                elif i - begin > LONGEST_PIECE:
                    at = token_start[text] + 1
                    token[at - 1] = NO_WORD
                    break
                else:
                    number = _number_of(data, begin, i, _key_of(data, begin, i), slots, word_start, word_data, words)
                    words = max(words, number + 1)
                    token[at] = number
                    at += 1
                if i < last and classes[data[i]] & APART:
                    i += 1
        text += 1
        token_start[text] = at
    return text, words


@numba.njit([numba.void(READ_U8, READ_I64, INT, WRITE_U64)], cache=True, nogil=True)
def place_words(word_data: Any, word_start: Any, words: Any, slots: Any) -> None:
    """Put the known words into larger `slots`, all zero."""
    mask = np.uint64(len(slots) - 2)
    for number in range(words):
        key = _key_of(word_data, word_start[number], word_start[number + 1])
        place = _place(key, mask)
        while slots[place + np.uint64(1)] != np.uint64(0):
            place = (place + np.uint64(2)) & mask
        slots[place] = key
        slots[place + np.uint64(1)] = np.uint64(number + 1)


@numba.njit([INT(READ_I64, READ_I32, READ_I64, WRITE_I64)], cache=True, nogil=True)
def count_tokens(token_start: Any, token: Any, term_start: Any, length: Any) -> Any:
    """length[i] = tokens of text i, whose words are token[token_start[i]:token_start[i + 1]]; word w is term_start[w + 1] - term_start[w] tokens. Returns their sum."""
    total = 0
    for i in range(len(length)):
        tokens = 0
        for p in range(token_start[i], token_start[i + 1]):
            w = token[p]
            tokens += term_start[w + 1] - term_start[w]
        length[i] = tokens
        total += tokens
    return total


@numba.njit([INT(READ_I64, READ_I32, READ_I64, READ_I32, WRITE_I64, INT, WRITE_I64, WRITE_I32, WRITE_I32)], cache=True, nogil=True)
def count_terms(token_start: Any, token: Any, term_start: Any, word_term: Any, seen: Any, base: Any, doc_start: Any, term: Any, tf: Any) -> Any:
    """The distinct terms of each text, in order of appearance, and their frequencies: term, tf[doc_start[i]:doc_start[i + 1]]. Returns how many there are in all.

    Word w is the terms word_term[term_start[w]:term_start[w + 1]]. `seen` int64 (terms) is scratch: all below `base` before, and below base + what is returned
    after. `term` and `tf` hold a place for every token.
    """
    at = 0
    for i in range(len(token_start) - 1):
        doc_start[i] = at
        for p in range(token_start[i], token_start[i + 1]):
            w = token[p]
            for q in range(term_start[w], term_start[w + 1]):
                t = word_term[q]
                place = seen[t] - base
                if place >= doc_start[i]:
                    tf[place] += 1
                else:
                    seen[t] = base + at
                    term[at] = t
                    tf[at] = 1
                    at += 1
    doc_start[len(token_start) - 1] = at
    return at
