"""`agentir demo`: what the engine does, on a small dated chat that comes with the package, in a store that is thrown away.

The chat (`demo_chat.jsonl`, written for this project) is eight months of a person and an assistant, in OpenAI's form. Its records are stored as if the engine had been
listening all along, so that questions can be asked as of any day in between.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import as_file, files
from typing import Any

from agentir_ray.cli.answers import Answer, ask
from agentir_ray.cli.console import plain, stdout
from agentir_ray.cli.explain import explanation_table
from agentir_ray.cli.search import print_answer
from agentir_ray.cli.storing import store_items
from agentir_ray.client.memory import Memory
from agentir_ray.ingest import Item, Skipped, read

NAMESPACE = "demo/nora"
QUESTIONS = (
    "When did I move to Lisbon?",
    "When is the deadline of the Coast Route?",
    "When did Isobar get her vaccinations?",
    "What am I allergic to?",
    "¿Cuándo es la feria de Sevilla?",
    "台风会议是什么时候?",
)
EXPLAINED = QUESTIONS[1]

# What an agent would distil from the chat; the second replaces the first from the day on which it was written.
COFFEE = "How does Nora drink her coffee?"
FACTS = (
    {"id": "fact-1", "text": "Nora drinks her coffee black, without sugar.", "timestamp": "2025-01-21T19:45:00Z", "created_at": "2025-01-21T19:45:00Z"},
    {
        "id": "fact-2",
        "text": "Nora drinks her coffee as a galão, with lots of milk.",
        "timestamp": "2025-06-06T18:10:00Z",
        "created_at": "2025-06-06T18:10:00Z",
        "supersedes": "fact-1",
    },
)
BEFORE = "2025-03-01"

NEXT = """\
agentir add "The dentist is on 4 May at 10:30" --session s1
agentir search "when is the dentist?" --explain
agentir import --format openai -n me/chats your_chat.json
agentir search -n me/chats "when ...?" --since 2025-01-01 --json
agentir recent
agentir --help"""


def demo() -> None:
    """Import a small dated chat, ask it questions, explain one score."""
    with tempfile.TemporaryDirectory(prefix="agentir-demo-") as folder, Memory.open(f"{folder}/store", namespace=NAMESPACE) as memory:
        _say("1. A chat goes in")
        totals = store_items(memory, NAMESPACE, chat())
        stdout().print(f"{totals.added} messages from eight months are stored and searchable, in {folder}.")

        _say("2. Dated answers come out")
        _ask(memory, QUESTIONS[0])  # the first search loads the compiled kernels; its time would say nothing
        for question in QUESTIONS:
            print_answer(_ask(memory, question), question, title=question)

        _say("3. Why the first answer is first")
        hit = _ask(memory, EXPLAINED, explain=True).hits[0][1]
        stdout().print(plain(hit.record.text))
        if hit.explanation is not None:
            stdout().print(explanation_table(hit.explanation, EXPLAINED))

        _say("4. What is true changes, and what was true stays askable")
        memory.import_(FACTS)
        print_answer(_ask(memory, COFFEE, k=1), COFFEE, title=f"{COFFEE} (now)")
        print_answer(_ask(memory, COFFEE, k=1, as_of=BEFORE), COFFEE, title=f"{COFFEE} (as of {BEFORE})")

    _say("What to try next")
    stdout().print(plain("The demo's store is gone. Your own is made by the first command that writes to it:"))
    for line in NEXT.splitlines():
        stdout().print(plain(f"  {line}"))


def chat() -> Iterator[Item | Skipped]:
    """The messages, each written down when it was said."""
    with as_file(files("agentir_ray.cli") / "demo_chat.jsonl") as path:
        for outcome in read(path, "openai"):
            yield replace(outcome, record={**outcome.record, "created_at": outcome.record["timestamp"]}) if isinstance(outcome, Item) else outcome


def _ask(memory: Memory, question: str, k: int = 3, **options: Any) -> Answer:
    return ask(memory, NAMESPACE, question, k=k, **options)


def _say(text: str) -> None:
    out = stdout()
    out.print()
    out.rule(plain(text, "bold"), align="left")
