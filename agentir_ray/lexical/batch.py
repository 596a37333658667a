"""Many texts analysed at once: the terms and lengths that `document.count_terms` finds, without an object a token.

The analyzer sees each distinct word once and is asked for its tokens; everything else happens on arrays (`kernels.tokenize`). Equality with the analyzer therefore rests on one
thing, that the kernel finds its words, and on nothing that the analyzer makes of them.
"""

import threading
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agentir_ray.analysis import Analyzer
from agentir_ray.analysis.word_classes import UNICODE_9, class_table
from agentir_ray.kernels import tokenize
from agentir_ray.lexical.document import CountedText, count_terms
from agentir_ray.lexical.strings import pack_texts

Array = npt.NDArray[Any]
MAX_WORDS = 2**20  # known words of a build; beyond that the memory starts afresh between two batches
MAX_SHARED_WORDS = 2**16  # of those that callers who write share: some 15 MB
FEW = 32  # texts that are analysed faster one by one
_WORD_BYTES = 32  # a word, counting what all of them may take together
_FIRST_SLOTS = 2**12

_BITS = {
    "A": tokenize.LETTER, "N": tokenize.DIGIT, "_": tokenize.CONNECTOR, "L": tokenize.JOINS_LETTERS, "M": tokenize.JOINS_DIGITS,
    "Q": tokenize.JOINS_LETTERS | tokenize.JOINS_DIGITS, "S": tokenize.JOINS_LETTERS | tokenize.JOINS_DIGITS, "D": 0, "h": 0, "O": tokenize.APART,
}  # fmt: skip


class Counted(NamedTuple):
    """Text i has length[i] tokens, of the distinct terms term[doc_start[i]:doc_start[i + 1]] in order of appearance, each tf times; doc_start, length int64, term, tf int32."""

    doc_start: Array
    term: Array
    tf: Array
    length: Array


def count_many(analyzer: Analyzer, texts: Sequence[str]) -> list[CountedText]:
    """`count_terms` of each text."""
    if len(texts) < FEW or analyzer.word_tokens is None:
        return [count_terms(analyzer, text) for text in texts]
    vocabulary = _shared.get(analyzer)
    if vocabulary is None or len(vocabulary.terms) > MAX_SHARED_WORDS:
        vocabulary = _shared[analyzer] = Vocabulary(analyzer, MAX_SHARED_WORDS)
    doc_start, term, tf, length = vocabulary.count(texts)
    terms, bounds = list(map(vocabulary.terms.__getitem__, term.tolist())), doc_start.tolist()
    return [CountedText(tokens, tuple(terms[first:end]), tf[first:end]) for tokens, (first, end) in zip(length.tolist(), pairwise(bounds), strict=True)]


class Vocabulary:
    """The terms of an analyzer, numbered as they come, and those of each word that was met. For any number of threads, which between them number each term once."""

    def __init__(self, analyzer: Analyzer, max_words: int = MAX_WORDS) -> None:
        self.analyzer = analyzer
        self.max_words = max_words
        self.terms: list[str] = []
        self._numbers: dict[str, int] = {}
        self._words: dict[bytes, int | tuple[int, ...]] = {}  # a lone number is the one term of a word: fewer objects for the garbage collector to look through
        self._lock = threading.Lock()
        self._idle: list[_WordTable] = []

    def count(self, texts: Sequence[str]) -> Counted:
        """The terms of each text."""
        return self.count_packed(texts, *pack_texts(texts))

    def count_packed(self, texts: Sequence[str], data: Array, start: Array) -> Counted:
        """The same for texts whose UTF-8 is data[start[i]:start[i + 1]]."""
        if self.analyzer.word_tokens is None:
            return self._count_singly(texts)
        with self._lock:
            table = self._idle.pop() if self._idle else _WordTable(self)
        counted = table.count(texts, data, start)
        with self._lock:
            if not table.full:
                self._idle.append(table)
        return counted

    def _count_singly(self, texts: Sequence[str]) -> Counted:
        lengths, terms, tfs = zip(*(count_terms(self.analyzer, text) for text in texts), strict=True) if texts else ((), (), ())
        doc_start = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(each) for each in terms], out=doc_start[1:])
        numbers = np.fromiter((number for each in terms for number in self.number(each)), np.int32, int(doc_start[-1]))
        return Counted(doc_start, numbers, np.concatenate([*tfs, np.empty(0, np.int32)]), np.array(lengths, np.int64))

    def number(self, tokens: Iterable[str]) -> list[int]:
        """The number of each token."""
        with self._lock:
            return [self._number(token) for token in tokens]

    def number_words(self, words: Sequence[bytes]) -> tuple[Array, Array]:
        """(size, numbers): how many tokens each word has, and the numbers of all of them, one word after the other."""
        known, tokens_of = self._words, self.analyzer.word_tokens
        assert tokens_of is not None
        size = np.ones(len(words), np.int64)
        numbers: list[int] = []
        with self._lock:
            if len(known) > self.max_words:
                known.clear()
            for i, word in enumerate(words):
                found = known.get(word)
                if found is None:
                    tokens = tokens_of(word.decode(errors="surrogatepass"))
                    found = known[word] = self._number(tokens[0]) if len(tokens) == 1 else tuple([self._number(token) for token in tokens])
                if isinstance(found, int):
                    numbers.append(found)
                else:
                    size[i] = len(found)
                    numbers += found
        return size, np.array(numbers, np.int32)

    def _number(self, token: str) -> int:
        number = self._numbers.get(token)
        if number is None:
            number = self._numbers[token] = len(self.terms)
            self.terms.append(token)
        return number


class _WordTable:
    """The words that one thread at a time has met, and the numbers of their terms: arrays that grow while it counts."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._words = 0
        self._slots = np.zeros(2 * _FIRST_SLOTS, np.uint64)
        self._word_start = np.zeros(_FIRST_SLOTS // 2 + 1, np.int64)
        self._word_data = np.empty(8 * _FIRST_SLOTS, np.uint8)
        self._term_start = np.zeros(len(self._word_start), np.int64)  # of each word: the first of its terms in _term
        self._term = np.empty(_FIRST_SLOTS, np.int32)
        self._seen = np.full(_FIRST_SLOTS, -1, np.int64)
        self._counted = 0

    @property
    def full(self) -> bool:
        most = self._vocabulary.max_words
        return self._words > most or int(self._word_start[self._words]) > _WORD_BYTES * most

    def count(self, texts: Sequence[str], data: Array, start: Array) -> Counted:
        token_start = np.zeros(len(texts) + 1, np.int64)
        token = np.empty(len(data) // 2 + len(texts) + 1, np.int32)
        before, done = self._words, 0
        while True:
            done, self._words = tokenize.scan_texts(
                data, start, done, _classes(), self._vocabulary.analyzer.divides_ideographs, self._slots, self._word_start, self._word_data, self._words, token_start, token
            )
            if done == len(texts):
                break
            self._make_room(int(start[done + 1] - start[done]))
        word_bytes = self._word_data[self._word_start[before] : self._word_start[self._words]].tobytes()
        bounds = (self._word_start[before : self._words + 1] - self._word_start[before]).tolist()
        found = self._vocabulary.number_words([word_bytes[bounds[i] : bounds[i + 1]] for i in range(len(bounds) - 1)])
        self._keep_terms(before, *found)
        nonempty = np.flatnonzero(token_start[1:] > token_start[:-1])
        left = nonempty[token[token_start[nonempty]] == tokenize.NO_WORD]
        if len(left):  # each of these texts is a word of its own, for once
            token[token_start[left]] = self._words + np.arange(len(left), dtype=np.int32)
            numbers = [self._vocabulary.number(self._vocabulary.analyzer.tokens(texts[i])) for i in left.tolist()]
            self._keep_terms(self._words, np.array([*map(len, numbers)], np.int64), np.array([*chain.from_iterable(numbers)], np.int32))
        length = np.empty(len(texts), np.int64)
        total = tokenize.count_tokens(token_start, token, self._term_start, length)
        doc_start, terms, tf = np.empty(len(texts) + 1, np.int64), np.empty(total, np.int32), np.empty(total, np.int32)
        self._seen = _with_room(self._seen, len(self._vocabulary.terms), -1)
        pairs = tokenize.count_terms(token_start, token, self._term_start, self._term, self._seen, self._counted, doc_start, terms, tf)
        self._counted += pairs
        return Counted(doc_start, terms[:pairs].copy(), tf[:pairs].copy(), length)

    def _keep_terms(self, word: int, size: Array, numbers: Array) -> None:
        """The terms of the words from number `word` on: how many each has, and all of them."""
        first = int(self._term_start[word])
        self._term_start = _with_room(self._term_start, word + len(size) + 1)
        self._term = _with_room(self._term, first + len(numbers))
        self._term_start[word + 1 : word + 1 + len(size)] = first + np.cumsum(size)
        self._term[first : first + len(numbers)] = numbers

    def _make_room(self, text_bytes: int) -> None:
        words = self._words + (text_bytes + 1) // 2 + 1
        if 4 * words > len(self._slots):
            self._slots = np.zeros(1 << (4 * words - 1).bit_length(), np.uint64)
            self._word_start = _with_room(self._word_start, len(self._slots) // 4 + 1)
            tokenize.place_words(self._word_data, self._word_start, self._words, self._slots)
        self._word_data = _with_room(self._word_data, int(self._word_start[self._words]) + text_bytes)


def _with_room(values: Array, size: int, fill: int = 0) -> Array:
    """The same array, or a copy with room for more than `size`."""
    if size <= len(values):
        return values
    larger = np.full(2 * size, fill, values.dtype)
    larger[: len(values)] = values
    return larger


_shared: dict[Analyzer, Vocabulary] = {}
_class_array: Array | None = None


def _classes() -> Array:
    """What each byte may do in a word, by the analyzers' own table."""
    global _class_array
    if _class_array is None:
        table = class_table(UNICODE_9)
        _class_array = np.array([_BITS[chr(table[code])] if code < 128 else tokenize.BEYOND_ASCII for code in range(256)], np.uint8)
    return _class_array
