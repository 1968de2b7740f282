"""Layouts: names in buckets, and buckets cut as an earlier run had them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from thinwire.errors import AttachError, StateError
from thinwire.layout import Layout, layout_of, split
from thinwire.ledger import Ledger
from thinwire.plans import Feedback

SIZES = {"a": 3, "b": 1, "c": 0, "d": 5, "e": 2}


@given(st.permutations(list(SIZES)), st.permutations(list(SIZES)), st.integers(1, 4))
def test_a_bucket_cut_and_put_together_is_the_bucket(now, then, cut):
    bucket = Layout.of({name: SIZES[name] for name in now})
    remembered = [tuple(then[:cut]), tuple(then[cut:])]
    values = torch.arange(float(bucket.numel))
    out = torch.zeros_like(values)
    groups = split(bucket, remembered)
    assert sorted(name for group in groups for name in group.layout.names) == sorted(SIZES)
    if bucket.names not in remembered:
        assert [group.layout.names for group in groups] == remembered
    for group in groups:
        part = group.gather(values)
        for span in group.layout.spans:
            place = next(s for s in bucket.spans if s.name == span.name)
            assert torch.equal(part[span.start : span.stop], values[place.start : place.stop])
        group.scatter(part, out)
    assert torch.equal(values, out)


def test_a_bucket_that_does_not_fit_stays_whole():
    bucket = Layout.of({"a": 3, "b": 1})
    for remembered in ([("a", "x")], [("a",)], [("b", "a", "x")], []):
        groups = split(bucket, remembered)
        assert [group.layout for group in groups] == [bucket]
        assert groups[0].gather(torch.ones(4)) is not None
    assert split(bucket, [("a", "b")])[0].places == ()


def test_layouts_of_ddp_buckets_must_tile():
    buffer = torch.zeros(10)
    assert layout_of(buffer, [buffer[:4], buffer[4:]], ["a", "b"]) == Layout.of({"a": 4, "b": 6})
    with pytest.raises(AttachError, match="not tiled"):
        layout_of(buffer, [buffer[:4], buffer[5:]], ["a", "b"])


def test_fingerprints_tell_names_sizes_and_order():
    layouts = [{"a": 3, "b": 1}, {"b": 1, "a": 3}, {"a": 4, "b": 1}, {"a": 3, "c": 1}, {"a": 3}]
    assert len({Layout.of(sizes).fingerprint for sizes in layouts}) == len(layouts)


def test_debts_move_with_their_parameters():
    ledger, like = Ledger(), torch.empty(0)
    page = ledger.page(Layout.of({"a": 2, "b": 3}), like)
    page.stage(torch.arange(5.0), Feedback(momentum=0.5))
    page.commit()
    moved = ledger.page(Layout.of({"b": 3, "x": 1}), like)
    assert moved.owed.tolist() == [2.0, 3.0, 4.0, 0.0]
    assert moved.velocity is not None
    assert moved.velocity.tolist() == [2.0, 3.0, 4.0, 0.0]
    assert ledger.owed()["a"].tolist() == [0.0, 1.0]
    assert ledger.page(Layout.of({"b": 3, "x": 1}), like) is moved
    with pytest.raises(StateError, match="another model"):
        ledger.page(Layout.of({"b": 4}), like)
    ledger.close(["a", "b", "x"])
    assert not ledger.owes_anything


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_loss_scale_that_cannot_be_spoils_no_debt(scale):
    ledger = Ledger()
    ledger.page(Layout.of({"a": 2}), torch.empty(0)).owed.copy_(torch.tensor([1.0, 2.0]))
    with pytest.raises(StateError, match="loss scale"):
        ledger.rescale(scale)
    assert (ledger.scale, ledger.owed()["a"].tolist()) == (1.0, [1.0, 2.0])
