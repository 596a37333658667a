"""The decision how warm each segment is to be: within its budgets, and stable."""

from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.engine.temperature_policy import ROOM, Facts, Temperature, choose_temperatures

HOT, WARM, COLD = Temperature.HOT, Temperature.WARM, Temperature.COLD
sizes = st.integers(1, 1_000)


@st.composite
def some_facts(draw: st.DrawFn) -> Facts:
    size = draw(sizes)
    spilled = draw(st.booleans())
    temperature = draw(st.sampled_from([WARM, COLD] if spilled else [HOT, WARM]))
    heavy = 0 if temperature is COLD else draw(st.integers(0, size))
    wanted = spilled and temperature is WARM and draw(st.booleans())
    return Facts(size, heavy, draw(st.integers(0, 30)), draw(st.sampled_from([0.0, 0.0, 0.5, 3.0, 100.0])), temperature, spilled, draw(st.sampled_from([0.1, 1.7])), wanted)


facts = st.lists(some_facts(), max_size=20)
budgets = st.integers(0, 3_000)


def carried_out(segments: list[Facts], chosen: list[Temperature]) -> list[Facts]:
    return [one._replace(temperature=new, heavy_bytes=0 if new is COLD else one.heavy_bytes, spilled=one.spilled or new is COLD) for one, new in zip(segments, chosen, strict=True)]


@given(facts, budgets, st.none() | budgets)
def test_the_budgets_hold(segments: list[Facts], hot: int, local: int | None) -> None:
    chosen = choose_temperatures(segments, hot, local)
    after = carried_out(segments, chosen)
    assert sum(one.bytes for one in after if one.temperature is HOT) <= hot
    if local is not None:
        left = sum(one.heavy_bytes for one in after)
        assert left <= local or not [one for one in after if one.temperature is not COLD and one.age > 0 and one.heavy_bytes and not one.wanted]
    for before, new in zip(segments, chosen, strict=True):
        if before.temperature is COLD:
            assert new is COLD, "only a search loads"
        elif new is COLD:
            assert local is not None and before.age > 0 and not before.wanted
        if new is HOT:
            assert not before.spilled


@given(facts, budgets, st.none() | budgets)
def test_what_was_decided_stays_decided(segments: list[Facts], hot: int, local: int | None) -> None:
    chosen = choose_temperatures(segments, hot, local)
    assert choose_temperatures(carried_out(segments, chosen), hot, local) == chosen


@given(facts, budgets)
def test_nothing_is_spilled_that_need_not_be(segments: list[Facts], local: int) -> None:
    held = sum(one.heavy_bytes for one in segments)
    chosen = choose_temperatures(segments, 0, local)
    spilled = [one for one, new in zip(segments, chosen, strict=True) if new is COLD and one.temperature is not COLD]
    if held <= local:
        assert not spilled
    elif spilled:
        last = max(spilled, key=lambda one: one.heat)
        assert held - sum(one.heavy_bytes for one in spilled) + last.heavy_bytes > ROOM * local


def test_the_coldest_go_first_and_the_hottest_are_copied() -> None:
    old, wanted, new = Facts(100, 80, 9, 0.0, WARM), Facts(100, 80, 8, 50.0, WARM), Facts(100, 80, 0, 0.0, WARM)
    assert choose_temperatures([old, wanted, new], 100, 200) == [COLD, HOT, WARM]
    assert choose_temperatures([old, wanted, new], 200, None) == [WARM, HOT, HOT]
    assert choose_temperatures([old, wanted, new], 100, 100) == [COLD, COLD, HOT]


def test_a_hot_one_is_not_given_up_for_one_that_is_hardly_hotter() -> None:
    incumbent, rival = Facts(100, 80, 2, 0.0, HOT), Facts(100, 80, 1, 0.0, WARM)
    assert choose_temperatures([incumbent, rival], 100, None) == [HOT, WARM]
    assert choose_temperatures([incumbent, rival._replace(answers=20.0)], 100, None) == [WARM, HOT]
