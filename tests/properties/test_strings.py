"""Packed strings are the strings, however they were packed."""

from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.lexical.strings import join_strings, pack_strings, pack_texts, take_strings


@given(st.lists(st.text(st.characters(exclude_categories=[]), max_size=4)), st.lists(st.text("a\0é", max_size=3)))
def test_texts(texts: list[str], more: list[str]) -> None:
    for each in (texts, more):
        packed = pack_texts(each)
        assert [packed.get(i) for i in range(len(packed))] == [text.encode(errors="surrogatepass") for text in each]
    joined = join_strings([pack_texts(texts), pack_strings([b"x"]), pack_texts(more)])
    assert len(joined) == len(texts) + 1 + len(more)
    backwards = take_strings(joined, list(range(len(joined)))[::-1])
    assert [backwards.get(i) for i in range(len(backwards))] == [joined.get(i) for i in range(len(joined))][::-1]
