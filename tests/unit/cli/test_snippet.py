"""What a table shows of a text."""

from agentir_ray.cli.snippet import snippet


def test_a_short_text_is_shown_whole_with_the_questions_words_in_bold() -> None:
    result = snippet("Alice moved to Lisbon", "where did alice move to?")
    assert result.plain == "Alice moved to Lisbon"
    assert [(span.start, span.end) for span in result.spans] == [(0, 5)]


def test_a_long_text_is_shown_around_the_first_word_that_matches() -> None:
    result = snippet("x" * 500 + " Lisbon " + "y" * 500, "lisbon", width=100)
    assert result.plain.startswith("…")
    assert result.plain.endswith("…")
    (span,) = result.spans
    assert result.plain[span.start : span.end] == "Lisbon"
    assert len(result.plain) <= 102


def test_a_long_text_without_a_match_is_shown_from_its_beginning() -> None:
    assert snippet("abc " * 100, "zebra", width=10).plain == "abc abc ab…"


def test_control_characters_and_markup_do_nothing() -> None:
    assert snippet("a\x1b[31m\nb [bold]c[/bold]").plain == "a [31m b [bold]c[/bold]"


def test_scripts_without_spaces() -> None:
    assert snippet("台风会议", "台风会议").spans
