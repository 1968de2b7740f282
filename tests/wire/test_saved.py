"""Saved states: they come back bit for bit, and whatever is no state of this rank and model is a `StateError`."""

import copy
import io
import json
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from thinwire.agreements import Leader, Seeded
from thinwire.codecs import Bitmap, Dense, IndexValue
from thinwire.errors import StateError
from thinwire.exchanges import AllReduce
from thinwire.plans import Feedback, Plan
from thinwire.saved import FORMAT, Saved, pack, unpack
from thinwire.selectors import Everything, RandomK, Rounded, TopK

State = dict[str, Any]

PARAMETERS = {
    "body.weight": torch.zeros(3, 4),
    "body.bias": torch.zeros(4, dtype=torch.bfloat16),
    "head": torch.zeros(2, dtype=torch.float64),
    "empty": torch.zeros(0),
}
PLAN = Plan(selector=Rounded(TopK(density=0.01, width=2), to="int8"), feedback=Feedback(momentum=0.9))


def numbers(size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    awkward = [1.5, -0.0, torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps, torch.finfo(dtype).min, math.pi]
    return torch.tensor(awkward * (size // 5 + 1), dtype=dtype)[:size].clone()


def saved(**changed: Any) -> Saved:
    fields: State = {
        "rank": 1,
        "world": 4,
        "steps": 70,
        "scale": 65536.0,
        "plan": PLAN,
        "groups": [("head",), ("body.weight", "body.bias")],
        "owed": {
            "body.weight": numbers(12),
            "body.bias": numbers(4),
            "head": numbers(2, torch.float64),
            "empty": torch.zeros(0),
        },
        "velocity": {"body.weight": numbers(12) * 0.5},
    }
    return Saved(**{**fields, **changed})


def good() -> State:
    return pack(saved())


def read(state: Any) -> Saved:
    return unpack(state, rank=1, world=4, parameters=PARAMETERS)


def same(one: Saved, other: Saved) -> None:
    for name in ("rank", "world", "steps", "scale", "plan", "groups"):
        assert getattr(one, name) == getattr(other, name), name
    for mine, theirs in ((one.owed, other.owed), (one.velocity, other.velocity)):
        assert mine.keys() == theirs.keys()
        for name, tensor in mine.items():
            assert tensor.dtype == theirs[name].dtype
            assert torch.equal(tensor.view(torch.uint8), theirs[name].view(torch.uint8)), name


def through_a_file(state: State) -> State:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    loaded: State = torch.load(file, weights_only=True)
    return loaded


@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        Plan(selector=Everything(), codec=Dense()),
        Plan(selector=Everything(), exchange=AllReduce()),
        Plan(selector=TopK(density=0.5), agreement=Leader(seed=3), codec=Bitmap(), exchange=AllReduce()),
        Plan(selector=RandomK(density=0.125), agreement=Seeded(seed=2**62), codec=IndexValue()),
    ],
    ids=str,
)
def test_a_state_comes_back_through_a_file_that_holds_only_tensors_and_numbers(plan: Plan) -> None:
    whole = saved(plan=plan)
    same(read(through_a_file(pack(whole))), whole)
    same(read(pack(whole)), whole)


def test_the_smallest_state_comes_back() -> None:
    whole = saved(steps=0, scale=1.0, groups=[], owed={}, velocity={})
    same(read(through_a_file(pack(whole))), whole)


def test_names_of_parameters_can_be_any_text() -> None:
    name = 'größe."\n\x00 {} [0]'
    whole = saved(groups=[(name,)], owed={name: numbers(2)}, velocity={})
    same(unpack(through_a_file(pack(whole)), rank=1, world=4, parameters={name: torch.zeros(2)}), whole)


def test_tensors_that_require_gradients_are_taken_without_them() -> None:
    state = good()
    state["owed"]["body.weight"].requires_grad_()
    state["velocity"]["body.weight"] = torch.nn.Parameter(state["velocity"]["body.weight"])
    found = read(state)
    assert not found.owed["body.weight"].requires_grad
    assert not found.velocity["body.weight"].requires_grad
    same(found, saved())


def text(data: Any) -> Tensor:
    return as_text(json.dumps(data))


def as_text(data: str | bytes) -> Tensor:
    raw = data.encode() if isinstance(data, str) else data
    return torch.tensor(list(raw), dtype=torch.uint8)


def plan_with(path: str, value: Any) -> Callable[[State], None]:
    """Set one entry of the plan's description."""

    def change(state: State) -> None:
        description = json.loads(bytes(state["plan"].tolist()))
        *parents, last = path.split(".")
        place = description
        for parent in parents:
            place = place[parent]
        place[last] = value
        state["plan"] = text(description)

    return change


def put(key: str, value: Any) -> Callable[[State], None]:
    return lambda state: state.__setitem__(key, value)


def owe(name: Any, value: Any, kind: str = "owed") -> Callable[[State], None]:
    return lambda state: state[kind].__setitem__(name, value)


def without(key: str) -> Callable[[State], Any]:
    return lambda state: state.pop(key)


def nested_in_the_old_way() -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch prefers the new way
        return torch.nested.nested_tensor([numbers(12)])


NAN = torch.full((12,), math.nan)
INFINITE = torch.tensor([1.0] * 11 + [math.inf])

DAMAGES: dict[str, Callable[[State], Any]] = {
    "another format": put("format", FORMAT + 1),
    "format 0": put("format", 0),
    "a format that is nearly a number": put("format", True),
    "a format that is a text": put("format", "1"),
    "a format that is a tensor": put("format", torch.ones(3)),
    "an enormous format": put("format", 10**5000),
    "another rank": put("rank", 0),
    "a negative rank": put("rank", -1),
    "a rank that is a text": put("rank", "1"),
    "a rank that is a float": put("rank", 1.0),
    "a rank that is a tensor": put("rank", torch.tensor([1, 1])),
    "an infinite rank": put("rank", math.inf),
    "another world": put("world", 3),
    "an enormous world": put("world", 10**5000),
    "negative steps": put("steps", -1),
    "half a step": put("steps", 0.5),
    "too many steps": put("steps", 2**63),
    "an enormous number of steps": put("steps", 10**5000),
    "no number of steps": put("steps", None),
    "a scale of zero": put("scale", 0.0),
    "a negative scale": put("scale", -1.0),
    "a scale that is not a number": put("scale", math.nan),
    "an infinite scale": put("scale", math.inf),
    "an enormous scale": put("scale", 10**400),
    "a scale that is a tensor": put("scale", torch.ones(2)),
    "no plan": put("plan", None),
    "a plan that is a text": put("plan", PLAN.text),
    "a plan that is a plan": put("plan", PLAN),
    "an empty plan": put("plan", torch.empty(0, dtype=torch.uint8)),
    "a plan cut off": lambda state: state.__setitem__("plan", state["plan"][:-1]),
    "a plan cut short": lambda state: state.__setitem__("plan", state["plan"][:20]),
    "a plan and more": lambda state: state.__setitem__("plan", torch.cat([state["plan"], state["plan"]])),
    "a plan in wider numbers": lambda state: state.__setitem__("plan", state["plan"].long()),
    "a plan in two dimensions": lambda state: state.__setitem__("plan", state["plan"].unsqueeze(0)),
    "one number that claims to be a long plan": put("plan", torch.tensor(2**45)),
    "a plan without data": put("plan", torch.empty(20, dtype=torch.uint8, device="meta")),
    "a sparse plan": put("plan", torch.ones(5, dtype=torch.uint8).to_sparse()),
    "a plan of bytes that are no text": put("plan", as_text(b"\xff\xfe\xfd")),
    "a plan that is a list": put("plan", text(["selector"])),
    "a plan that is a number": put("plan", text(7)),
    "a plan that is nothing": put("plan", text(None)),
    "a plan without parts": put("plan", text({})),
    "a plan of deep lists": put("plan", as_text("[" * 100_000)),
    "a plan of deep parts": put("plan", as_text('{"selector":' * 50_000 + "1" + "}" * 50_000)),
    "an unknown kind of part": plan_with("colour", {"name": "red"}),
    "an unknown part": plan_with("selector.name", "top-secret"),
    "a part of another kind": plan_with("selector", {"name": "delta"}),
    "a part without a name": plan_with("codec", {}),
    "a part that is a name": plan_with("codec", "delta"),
    "a part that is a list": plan_with("codec", ["delta"]),
    "a part that is a number": plan_with("exchange", 1),
    "a part whose name is a list": plan_with("exchange.name", ["all-gather"]),
    "an extra option": plan_with("codec.level", 9),
    "an extra option of an inner part": plan_with("selector.selector.depth", 2),
    "an extra option of feedback": plan_with("feedback.decay", 0.5),
    "a density of two": plan_with("selector.selector.density", 2),
    "a density that is a text": plan_with("selector.selector.density", "0.01"),
    "a density that is no number": plan_with("selector.selector.density", math.nan),
    "a density that is a part": plan_with("selector.selector.density", {"name": "top-k"}),
    "a width of zero": plan_with("selector.selector.width", 0),
    "an unknown rounding": plan_with("selector.to", "int3"),
    "a rounding that is a list": plan_with("selector.to", ["int8"]),
    "a selector inside that is none": plan_with("selector.selector", 3),
    "a momentum of one": plan_with("feedback.momentum", 1),
    "a momentum that is nothing": plan_with("feedback.momentum", None),
    "feedback that is nothing": plan_with("feedback", None),
    "parts that do not fit": plan_with("exchange", {"name": "all-reduce"}),
    "no groups": put("groups", None),
    "groups that are a text": put("groups", '[["head"]]'),
    "groups cut off": lambda state: state.__setitem__("groups", state["groups"][:-1]),
    "groups that are a mapping": put("groups", text({"head": 1})),
    "groups that are names": put("groups", text(["head"])),
    "groups of numbers": put("groups", text([[1, 2]])),
    "groups of lists": put("groups", text([[["head"]]])),
    "groups of mappings": put("groups", text([{"head": 1}])),
    "a parameter twice in a group": put("groups", text([["head", "head"]])),
    "a parameter in two groups": put("groups", text([["head"], ["body.bias", "head"]])),
    "a group of another model": put("groups", text([["tail"]])),
    "no debts": put("owed", None),
    "debts that are pairs": put("owed", [("head", numbers(2, torch.float64))]),
    "debts that are a tensor": put("owed", torch.zeros(3, 2)),
    "a debt of another model": owe("tail", numbers(2)),
    "a debt of nobody": owe(None, numbers(2)),
    "a debt of a tensor": owe(torch.ones(2), numbers(2)),
    "a debt of an enormous number": owe(10**5000, numbers(2)),
    "a debt that is a number": owe("head", 1.0),
    "a debt that is nothing": owe("head", None),
    "a debt that is an array": owe("body.weight", np.zeros(12, dtype=np.float32)),
    "a debt too short": owe("body.weight", numbers(11)),
    "a debt too long": owe("body.weight", numbers(13)),
    "a debt in the shape of its parameter": owe("body.weight", numbers(12).view(3, 4)),
    "a debt of whole numbers": owe("body.weight", torch.ones(12, dtype=torch.int64)),
    "a debt in the type of its parameter": owe("body.bias", torch.zeros(4, dtype=torch.bfloat16)),
    "a debt in too wide a type": owe("body.weight", numbers(12, torch.float64)),
    "a debt in too narrow a type": owe("head", numbers(2)),
    "a complex debt": owe("body.weight", torch.zeros(12, dtype=torch.complex64)),
    "a debt that is not a number": owe("body.weight", NAN),
    "an infinite debt": owe("body.weight", INFINITE),
    "a sparse debt": owe("body.weight", numbers(12).to_sparse()),
    "a debt without data": owe("body.weight", torch.empty(12, device="meta")),
    "a nested debt": owe("body.weight", torch.nested.nested_tensor([numbers(12)], layout=torch.jagged)),
    "a debt nested in the old way": owe("body.weight", nested_in_the_old_way()),
    "no velocities": put("velocity", 0),
    "a velocity of another model": owe("tail", numbers(2), "velocity"),
    "a velocity without a debt": lambda state: state["owed"].pop("body.weight"),
    "a velocity too short": owe("body.weight", numbers(3), "velocity"),
    "an infinite velocity": owe("body.weight", INFINITE, "velocity"),
    **{f"{key} missing": without(key) for key in good()},
}


@pytest.mark.parametrize("damage", [pytest.param(damage, id=name) for name, damage in DAMAGES.items()])
def test_damaged_and_foreign_states_are_refused(damage: Callable[[State], Any]) -> None:
    state = good()
    damage(state)
    with pytest.raises(StateError) as refused:
        read(state)
    assert type(refused.value) is StateError


@pytest.mark.parametrize(
    "state", [None, 1, "state", b"state", [], [("format", 1)], torch.ones(3), object(), {}, {1: 1}]
)
def test_what_is_no_mapping_is_refused(state: Any) -> None:
    with pytest.raises(StateError, match="no thinwire state"):
        read(state)


@pytest.mark.parametrize(
    ("rank", "world", "words"),
    [(0, 4, "rank 1, and this is rank 0"), (1, 2, "one of 4 ranks, but there are 2"), (1, 8, "flush")],
)
def test_a_state_of_another_place_says_what_to_do(rank: int, world: int, words: str) -> None:
    with pytest.raises(StateError, match=words):
        unpack(good(), rank=rank, world=world, parameters=PARAMETERS)


def test_reading_changes_nothing_in_the_state() -> None:
    state = good()
    before = copy.deepcopy(state)
    found = read(state)
    for tensor in found.owed.values():
        assert tensor.dtype in (torch.float32, torch.float64)
    same(read(state), read(before))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.sampled_from([10**400, torch.empty(0), torch.tensor(7), torch.tensor(math.nan), torch.zeros(2, 2), set(), {}]),
    st.lists(st.integers(0, 255), max_size=30).map(lambda numbers: torch.tensor(numbers, dtype=torch.uint8)),
    st.lists(st.floats(width=32), max_size=13).map(lambda numbers: torch.tensor(numbers, dtype=torch.float32)),
    st.dictionaries(st.sampled_from(["head", "body.weight", "x"]), st.floats(), max_size=2),
)
PLAIN_DATA = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(["top-k", "delta", "int8", "x"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["name", "selector", "density", "to", "momentum", "x"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@st.composite
def damaged_states(draw: st.DrawFn) -> State:
    """A right state of which one thing or more was replaced by anything."""
    state = good()
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["entry", "entry", "debt", "plan", "groups", "bytes"])):
            case "entry":
                state[draw(st.sampled_from(sorted(good())))] = draw(JUNK)
            case "debt":
                kind = draw(st.sampled_from(["owed", "velocity"]))
                state[kind] = {**good()[kind], draw(st.sampled_from([*PARAMETERS, "tail"])): draw(JUNK)}
            case "plan":
                description = PLAN.describe()
                description[draw(st.sampled_from(sorted(description)))] = draw(PLAIN_DATA)
                state["plan"] = text(description)
            case "groups":
                state["groups"] = text(draw(PLAIN_DATA))
            case _:
                key = draw(st.sampled_from(["plan", "groups"]))
                raw = bytearray(bytes(good()[key].tolist()))
                for _ in range(draw(st.integers(1, 3))):
                    raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
                state[key] = as_text(bytes(raw))
    return state


@settings(max_examples=800, deadline=None)
@given(state=damaged_states())
def test_anything_is_either_a_state_or_a_state_error(state: State) -> None:
    try:
        found = read(state)
    except StateError:
        return
    # Whatever was taken is a state: it can be saved, and comes back.
    same(read(pack(found)), found)
    assert (found.rank, found.world) == (1, 4)
    assert found.steps >= 0
    assert 0.0 < found.scale < math.inf
    for name, tensor in [*found.owed.items(), *found.velocity.items()]:
        assert tensor.shape == (PARAMETERS[name].numel(),)
        assert bool(torch.isfinite(tensor).all())
