"""A model's tokenizer (`tokenizer.json`), with a window of tokens and a prompt that does not count as text. It knows no model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentir_ray.encoders.lazy import Lazy, needs
from agentir_ray.encoders.passages import cut
from agentir_ray.errors import EncodingError

OVERLAP = 0.125  # of the window: a sentence or two


class Tokenized(NamedTuple):
    """`ids` as the model reads them, with special tokens; `first` and `last` bound those of the text itself."""

    ids: list[int]
    first: int
    last: int


class Tokens:
    """`window` counts what the model reads at most, special tokens and prompt included."""

    def __init__(self, file: Path, window: int, install: str) -> None:
        self.window = window
        self._install = install
        self._file = file
        self._tokenizer = Lazy(self._load, file)

    def _load(self) -> Any:
        with needs(self._install, "this encoder"):
            from tokenizers import Tokenizer
        tokenizer = Tokenizer.from_file(str(self._file))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    def vocabulary(self) -> list[str]:
        """Token by id."""
        by_token = self._tokenizer.get().get_vocab()
        tokens = [""] * (max(by_token.values()) + 1)
        for token, number in by_token.items():
            tokens[number] = token
        return tokens

    def plain(self, text: str) -> list[int]:
        """The ids of the text alone, however many."""
        ids: list[int] = self._tokenizer.get().encode(checked(text), add_special_tokens=False).ids
        return ids

    def tokenize(self, text: str, prompt: str = "") -> Tokenized:
        """The prompt and as much of the text as fits. No token of the text: `first` == `last`."""
        tokenizer = self._tokenizer.get()
        encoding = tokenizer.encode(prompt + checked(text), add_special_tokens=False)
        encoding.truncate(self.window - tokenizer.num_special_tokens_to_add(False))
        of_prompt = sum(begin < len(prompt) for begin, _ in encoding.offsets) if prompt else 0
        whole = tokenizer.post_process(encoding)
        special = whole.special_tokens_mask
        leading = special.index(0) if 0 in special else 0
        return Tokenized(whole.ids, leading + of_prompt, leading + len(encoding))

    def passages(self, text: str, prompt: str = "") -> list[str]:
        """Each with the prompt fits the window."""
        tokenizer = self._tokenizer.get()
        taken = tokenizer.num_special_tokens_to_add(False) + (len(self.plain(prompt)) if prompt else 0)
        window = self.window - taken
        encoding = tokenizer.encode(checked(text), add_special_tokens=False)
        return cut(text, encoding.offsets, window, int(window * OVERLAP)) if len(encoding) > window else [text]


def checked(text: str) -> str:
    """The text, if it is one: a lone half of a surrogate pair has no UTF-8, which tokenizers need."""
    try:
        text.encode("utf-8")
    except (AttributeError, UnicodeEncodeError) as error:
        raise EncodingError(f"this cannot be encoded: {error}. Give text without lone surrogates.") from error
    return text


def blank(text: str) -> bool:
    return not text.strip()


def by_length(lengths: Sequence[int], batch: int) -> list[list[int]]:
    """Which rows to read together, at most `batch`, so that little is padded: long ones first, as what they need in memory then suffices for the rest."""
    order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
    return [order[at : at + batch] for at in range(0, len(order), batch)]
