"""The demo is the first thing that a newcomer sees: its answers are right."""

from agentir_ray.cli.demo import chat
from agentir_ray.ingest import Item
from tests.cli.conftest import Run


def test_the_chat_is_whole_and_dated() -> None:
    items = [outcome for outcome in chat() if isinstance(outcome, Item)]
    assert len(items) == 126
    times = [item.record["timestamp"] for item in items]
    assert times == sorted(times)
    assert len({item.record["id"] for item in items}) == 126


def test_the_demo_answers_its_questions(run: Run) -> None:
    out = run("demo").out
    for answer in ("I moved to Lisbon!", "The Coast Route deadline moved to 21 March", "got her vaccinations", "allergic to hazelnuts", "feria", "台风会议"):
        assert answer in out
    now, before = out.split("(now)")[1].split("(as of 2025-03-01)")
    assert "galão" in now
    assert "black" in before
