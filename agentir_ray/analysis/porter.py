"""The Porter stemmer as Lucene's PorterStemFilter has it.

That is Martin Porter's own later program ("release 3"), which departs from the paper in -bli (-> -ble) and -logi (-> -log); Snowball's "porter" does not, so a library that
wraps Snowball gives other stems. It knows a lower-case word and no language: any letter but a, e, i, o, u (and y after a consonant) counts as a consonant, whatever its script.

Source: M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980; https://tartarus.org/martin/PorterStemmer/.
"""

_SHAPE = str.maketrans({**dict.fromkeys(map(chr, range(128)), "c"), **dict.fromkeys("aeiou", "v"), "y": "y"})

# Suffix -> what takes its place, grouped by the letter that decides (the last but one in steps 3 and 5, the last in step 4). The first suffix that fits is the only one tried.
_Rules = dict[str, tuple[tuple[str, str], ...]]
_STEP_3: _Rules = {
    "a": (("ational", "ate"), ("tional", "tion")),
    "c": (("enci", "ence"), ("anci", "ance")),
    "e": (("izer", "ize"),),
    "l": (("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous")),
    "o": (("ization", "ize"), ("ation", "ate"), ("ator", "ate")),
    "s": (("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    "t": (("aliti", "al"), ("iviti", "ive"), ("biliti", "ble")),
    "g": (("logi", "log"),),
}
_STEP_4: _Rules = {
    "e": (("icate", "ic"), ("ative", ""), ("alize", "al")),
    "i": (("iciti", "ic"),),
    "l": (("ical", "ic"), ("ful", "")),
    "s": (("ness", ""),),
}
_STEP_5: dict[str, tuple[str, ...]] = {
    "a": ("al",),
    "c": ("ance", "ence"),
    "e": ("er",),
    "i": ("ic",),
    "l": ("able", "ible"),
    "n": ("ant", "ement", "ment", "ent"),
    "o": ("sion", "tion", "ou"),  # of -sion and -tion only -ion goes
    "s": ("ism",),
    "t": ("ate", "iti"),
    "u": ("ous",),
    "v": ("ive",),
    "z": ("ize",),
}

# The last letters of all suffixes: a word that ends in none of them, as numbers do, is its own stem.
_LAST = (
    frozenset("sdgyel")
    | {suffix[-1] for rules in (*_STEP_3.values(), *_STEP_4.values()) for suffix, _ in rules}
    | {suffix[-1] for suffixes in _STEP_5.values() for suffix in suffixes}
)

TABLES = repr((_STEP_3, _STEP_4, _STEP_5))


def stem(word: str) -> str:
    """The stem of a lower-case word. Words of one or two letters stay as they are."""
    if not word.isascii() and max(word) > "\uffff":
        # Lucene's letters are UTF-16 units, so that one above U+FFFF counts as two consonants.
        units = "".join(map(chr, memoryview(word.encode("utf-16-le", "surrogatepass")).cast("H")))
        return _stem(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _stem(word)


def _stem(word: str) -> str:
    if len(word) < 3 or word[-1] not in _LAST:
        return word
    word = _step_1(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    if len(word) > 1:
        word = _replace(word, _STEP_3.get(word[-2], ()))
    word = _replace(word, _STEP_4.get(word[-1], ()))
    if len(word) > 1:
        word = _step_5(word)
    return _step_6(word)


def _shape(stem: str) -> str:
    """`c` for a consonant and `v` for a vowel, letter by letter."""
    shape = (stem if stem.isascii() else "".join(letter if letter <= "\x7f" else "c" for letter in stem)).translate(_SHAPE)
    while (at := shape.find("y")) >= 0:
        shape = shape[:at] + ("v" if at and shape[at - 1] == "c" else "c") + shape[at + 1 :]
    return shape


def _measure(stem: str) -> int:
    """How often a vowel is followed by a consonant: m in the paper."""
    return _shape(stem).count("vc")


def _short(stem: str) -> bool:
    """Ends consonant, vowel, consonant, the last not w, x or y (*o in the paper): where an e is put back, or kept."""
    return stem[-1:] not in ("w", "x", "y") and _shape(stem).endswith("cvc")


def _doubled(stem: str) -> bool:
    """Ends in the same consonant twice."""
    return len(stem) > 1 and stem[-1] == stem[-2] and _shape(stem).endswith("c")


def _step_1(word: str) -> str:
    """Plurals, -ed and -ing."""
    if word.endswith("s"):
        if word.endswith(("sses", "ies")):
            word = word[:-2]
        elif word[-2] != "s":
            word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    base = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else word
    if base == word or "v" not in _shape(base):
        return word
    if base.endswith(("at", "bl", "iz")):
        return base + "e"
    if _doubled(base):
        return base if base[-1] in "lsz" else base[:-1]
    return base + "e" if _measure(base) == 1 and _short(base) else base


def _replace(word: str, rules: tuple[tuple[str, str], ...]) -> str:
    for suffix, replacement in rules:
        if word.endswith(suffix):
            base = word[: len(word) - len(suffix)]
            return base + replacement if _measure(base) > 0 else word
    return word


def _step_5(word: str) -> str:
    """-ant, -ence and the like, after a stem of measure 2 at least."""
    for suffix in _STEP_5.get(word[-2], ()):
        if word.endswith(suffix):
            base = word[: len(word) - (3 if suffix.endswith("ion") else len(suffix))]
            return base if _measure(base) > 1 else word
    return word


def _step_6(word: str) -> str:
    """A final e, and one l of two."""
    if not word.endswith(("e", "ll")):
        return word
    measure = _measure(word)
    if word.endswith("e") and (measure > 1 or (measure == 1 and not _short(word[:-1]))):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and measure > 1 else word
