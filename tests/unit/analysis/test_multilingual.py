"""The default analyzer in every script, alone and mixed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.analysis import get_analyzer

MULTILINGUAL = get_analyzer("multilingual")
ENGLISH = get_analyzer("english")


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_english(text: str) -> None:
    assert MULTILINGUAL.tokens(text) == ENGLISH.tokens(text)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我昨天在北京见了张伟,聊了云计算。", "北京"),
        ("我昨天在北京见了张伟", "张伟在哪里"),
        ("他在买书", "书"),
        ("日本語のテキストとひらがな", "テキスト"),
        ("ﾃｷｽﾄ", "テキスト"),
        ("ภาษาไทยไม่มีช่องว่าง", "ภาษาไทย"),
        ("ພາສາລາວ", "ລາວ"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("မြန်မာဘာသာ", "မြန်မာ"),
        ("한국어를 배웁니다", "한국어"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국"),
        ("ذهبت إلى المدرسة أمس", "مَدْرَسَة"),
        ("می‌خواهم کتاب بخرم", "كتاب"),
        ("שָׁלוֹם עולם", "שלום"),
        ("मैंने किताबें खरीदीं", "किताब"),
        ("Вчера мы ездили в Москву", "москве"),
        ("ёлка", "елка"),
        ("Η Αθήνα και οι ΔΡΟΜΟΙ", "δρόμος"),
        ("naïve CAFÉ", "cafe\u0301"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ｆｕｌｌ ｗｉｄｔｈ １２３", "123 full"),
        ("١٢٣", "123"),
        ("I ❤️ pizza 🍕", "❤"),
        ("nice 👍🏽", "👍"),
        ("👩‍👩‍👧 came over", "👩‍👩‍👧"),
        ("moved to 东京 in 2024年", "2024 东京"),
        ("iPhone15を買った", "iphone15"),
        ("OpenAI는 회사다", "openai"),
        ("สวัสดีJohn", "john"),
        ("soft\u00adhyphen", "softhyphen"),
        ("don’t", "don't"),
        ("it’s Anna’s", "Anna's"),
    ],
)
def test_f15_text_of_any_script_is_found_by_a_query_in_it(text: str, query: str) -> None:
    assert MULTILINGUAL.tokens(query) != []
    assert set(MULTILINGUAL.tokens(query)) & set(MULTILINGUAL.tokens(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京天", ["北", "北京", "京", "京天", "天"]),
        ("書", ["書"]),
        ("3月AI", ["3", "月", "ai"]),
        ("北 京", ["北", "京"]),
        ("時々", ["時", "時々", "々"]),
        ("ไม่", ["ไ", "ไม่", "ม่"]),
        ("한국", ["한", "한국", "국"]),
        ("The cats' café's 🇩🇪", ["cat", "café", "🇩🇪"]),
        ("𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠀀𠀁", ["unicod", "𠀀", "𠀀𠀁", "𠀁"]),
        ("\U00030000 Ა", ["\U00030000", "ა"]),  # characters younger than Unicode 9
    ],
)
def test_f15_tokens(text: str, expected: list[str]) -> None:
    assert MULTILINGUAL.tokens(text) == expected


def test_a_character_that_stands_for_several_words_gives_several_tokens() -> None:
    assert len(MULTILINGUAL.tokens("ﷺ")) == 4


@given(st.text(st.sampled_from("a1 _京ひテกั한ר'\"\u0301\u200d👍🏽\u1100\u1161é.")))
def test_no_token_is_empty_or_holds_a_space(text: str) -> None:
    assert all(token and not any(map(str.isspace, token)) for token in MULTILINGUAL.tokens(text))
