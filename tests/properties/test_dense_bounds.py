"""What codes say of a row holds at every stage: for any numbers that float32 has, axes of any origin, and queries of any length."""

from random import Random
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentir_ray.dense.codes import Codes, QueryRotations, encode, stage_ends
from agentir_ray.dense.rotation import identity
from agentir_ray.kernels import flat_scan
from tests.naive_dense import dot

seeds = st.integers(0, 2**32 - 1).map(Random)


def some_numbers(rng: Any, rows: int, dim: int, kind: str) -> Any:
    values = rng.normal(size=(rows, dim)) * (1.0 + np.arange(dim)) ** -0.6
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    if kind == "tiny":
        values *= 10.0 ** rng.uniform(-44, -36, (rows, 1))
    elif kind == "huge":
        values *= 10.0 ** rng.uniform(30, 38, (rows, 1))
    elif kind == "all":
        values *= 10.0 ** rng.uniform(-44, 38, (rows, 1))
    elif kind == "one":
        values = np.zeros((rows, dim))
        values[np.arange(rows), rng.integers(0, dim, rows)] = 1.0
    elif kind == "zeros":
        values[:] = 0.0
    return values.astype(np.float32)


@given(seeds)
def test_a_dot_product_is_within_its_bounds(random: Random) -> None:
    rng = np.random.default_rng(random.randrange(2**32))
    dim, rows = random.choice([1, 3, 63, 64, 65, 128, 200, 600]), random.choice([1, 64, 100])
    kinds = ["unit", "tiny", "huge", "all", "one", "zeros"]
    vectors = some_numbers(rng, rows, dim, random.choice(kinds))
    axes = None
    if random.random() < 0.5:
        axes = np.linalg.qr(rng.normal(size=(dim, dim)))[0].astype(np.float32)
        axes[0] *= np.float32(random.choice([1.0, 1.0004]))  # as far from orthonormal as is let in
    sections, unit, askew = encode(vectors, axes)
    codes = Codes(sections.__getitem__, {"unit": unit, "askew": askew, "axes": identity(sections["axes"])}, dim, rows)
    query = vectors[0].copy() if random.random() < 0.3 else some_numbers(rng, 1, dim, random.choice(kinds))[0]
    stages, whole = QueryRotations(query.astype(np.float64)).stages(codes)
    true = np.array([dot(vector, query) for vector in vectors])

    value, bound, sure = np.empty(rows, np.float32), np.empty(rows, np.float32), np.zeros(rows, np.uint8)
    flat_scan.estimate(codes.code[0], codes.scale, stages[0].code, stages[0].scale, 0, rows, value)
    everywhere, nothing = np.arange(rows), np.empty(0, np.float64)
    for s, stage in enumerate(stages):
        code, of_query = (codes.code[s], stage.code) if s else (np.empty(0, np.int8), np.empty(0, np.int16))
        left = flat_scan.refine(
            rows, everywhere, value, bound, sure, code, codes.scale, codes.error[s], codes.tail[s], of_query, stage.scale, stage.known, stage.unknown, stage.spare,
            whole, np.empty(0, np.int32), nothing, -np.inf, 0,
        )  # fmt: skip
        assert left == rows
        reach = bound.astype(np.float64) * whole
        slack = (bound.astype(np.float64) - value) * whole
        assert (true <= reach).all()
        assert (true >= value.astype(np.float64) * whole - slack * (1.0 + 1e-6)).all()
    # And they are of use: after the last stage, what codes cannot tell is little.
    assert (slack <= 0.1 * unit * np.linalg.norm(query.astype(np.float64)) + 1e-3 * whole).all()


def test_stages_double_and_then_go_by_512() -> None:
    assert stage_ends(1) == [1]
    assert stage_ends(64) == [64]
    assert stage_ends(384) == [64, 128, 256, 384]
    assert stage_ends(2_048) == [64, 128, 256, 512, 1_024, 1_536, 2_048]
    assert len(stage_ends(4_096)) == 11
    assert all(127 * 32_767 * (end - begin) < 2**31 for dim in range(1, 4_097) for begin, end in zip([0, *stage_ends(dim)], stage_ends(dim), strict=False))


@given(seeds)
def test_a_leader_is_one_of_the_largest(random: Random) -> None:
    """`leaders` gives rows of the largest estimates, and `survivors` exactly those that reach the threshold."""
    rng = np.random.default_rng(random.randrange(2**32))
    rows = random.choice([1, 10, 1_023, 1_024, 3_000])
    value = np.round(rng.normal(size=rows), random.choice([1, 6])).astype(np.float32)
    prior = rng.choice([0.0, 0.5, 3.0], rows) if random.random() < 0.5 else np.empty(0)
    seen = rng.random(rows) < 0.7
    bits = np.zeros((rows + 63) // 64 * 64, bool)
    bits[:rows] = seen
    words = np.packbits(bits, bitorder="little").view(np.uint64)
    first, end = sorted(random.choices(range(rows + 1), k=2))
    largest_prior = float(prior[first:end].max(initial=-np.inf)) if len(prior) else 0.0
    total = value.astype(np.float64) * 2.0 + (prior if len(prior) else 0.0)
    there = [row for row in range(first, end) if seen[row]]
    wanted = random.choice([1, 5, 200])
    out = np.empty(4 * wanted, np.int64)
    found = flat_scan.leaders(value, first, end, 2.0, np.empty(0, np.int32), words, prior, largest_prior, wanted, out)
    assert len(set(out[:found].tolist())) == found == min(wanted, len(there))
    assert sorted(total[out[:found]].tolist()) == sorted(total[there].tolist())[len(there) - found :]

    error, tail = rng.random(rows).astype(np.float32), rng.random(rows).astype(np.float32)
    known, unknown, spare = np.float32(0.1), np.float32(0.2), np.float32(1e-3)
    reach = (value + (known * error + unknown * tail + spare)).astype(np.float64) * 2.0 + (prior if len(prior) else 0.0)
    threshold = random.choice([-np.inf, 1e300, -1e300, *(reach[there].tolist() or [0.0])[:20]])
    left, left_value = np.empty(rows, np.int64), np.empty(rows, np.float32)
    count = flat_scan.survivors(value, error, tail, known, unknown, spare, first, end, 2.0, np.empty(0, np.int32), words, prior, largest_prior, threshold, left, left_value)
    assert left[:count].tolist() == [row for row in there if reach[row] >= threshold]
    assert left_value[:count].tolist() == value[left[:count]].tolist()
