"""Laws 3 and 4: every rank gets the same bits, they are the mean of what was sent, and it cost what was declared."""

import pytest
import torch

from tests.laws.samples import plans
from tests.laws.test_conservation import gradient
from thinwire import message
from thinwire.carry import Cargo, carry
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.plans import Feedback, Plan
from thinwire.roll_call import SIZE, Record, What, announce
from thinwire.selectors import TopK
from thinwire.types import Traffic, Turn, ValueFormat, unit_count

NUMEL = 157
WEIGHTS = torch.linspace(-1.0, 2.0, NUMEL)


class Witness(ThreadWire):
    """Remembers what the roll call said, and what each collective cost."""

    letters: list[int]
    weights: list[float]
    costs: list[Traffic]
    counted_so_far: Traffic

    def hear(self):
        """As the wire does, with an ear open."""
        notes = self.counted(super().hear)
        records = [Record.unpack(note[:SIZE].numpy().tobytes()) for note in notes]
        self.letters = [record.letter for record in records]
        self.weights = [record.weight for record in records]
        return notes

    def collect(self, *args):
        """Counted, with what was posted before it."""
        return self.counted(super().collect, *args)

    def all_gather(self, *args):
        """Counted."""
        return self.counted(super().all_gather, *args)

    def broadcast(self, *args):
        """Counted."""
        return self.counted(super().broadcast, *args)

    def all_reduce(self, *args):
        """Counted."""
        return self.counted(super().all_reduce, *args)

    def counted(self, collective, *args, **options):
        """What one collective makes this rank send."""
        result = collective(*args, **options)
        before, after = self.counted_so_far, self.traffic
        self.counted_so_far = after
        self.costs.append(Traffic(bytes_sent=after.bytes_sent - before.bytes_sent, rounds=after.rounds - before.rounds))
        return result


def two_steps(wire: ThreadWire, plan: Plan) -> list[tuple[torch.Tensor, torch.Tensor, list[Traffic], Traffic]]:
    """Per step: the mean, what this rank sent, the cost of each collective, the cost declared."""
    wire.__class__ = Witness
    assert isinstance(wire, Witness)
    wire.counted_so_far = wire.traffic
    ledger, out = Ledger(), []
    for step in range(2):
        fresh = gradient(("normal", "heavy tail")[step], NUMEL, 10 * step + wire.rank)
        if step == 1 and wire.rank == 0:
            fresh = torch.zeros(NUMEL)
        before = ledger.owed().get("w", torch.zeros(NUMEL)).double() if not plan.feedback.momentum else None
        turn = Turn(step=step, group=0, rank=wire.rank, world=wire.world)
        wire.costs = []
        cargo = Cargo(gradient=fresh, layout=Layout.of({"w": NUMEL}), turn=turn, weights=[WEIGHTS])
        carried = carry(cargo, plan, ledger, wire)
        assert carried.seen.bytes_sent == sum(cost.bytes_sent for cost in wire.costs)
        kept = torch.zeros(NUMEL, dtype=torch.float64)
        if carried.page is not None:
            carried.page.commit()
            kept = carried.page.owed.double()
        sent = torch.zeros(0) if before is None else before + fresh.double() - kept
        if not plan.exchange.early and not (plan.agreement.tells and plan.agreement.goes_along(max(wire.letters))):
            assert len(wire.costs) == 1 + plan.agreement.calls(wire.world) + plan.exchange.calls(wire.world)
        out.append((carried.mean.clone(), sent, wire.costs, declared(plan, wire, turn, carried.seen.sent)))
    return out


def declared(plan: Plan, wire: ThreadWire, turn: Turn, sent: int) -> Traffic:
    """What the parts say that this costs, from sizes alone."""
    assert isinstance(wire, Witness)
    roll_call = Traffic(bytes_sent=(wire.world - 1) * SIZE, rounds=1)
    itemsize = 4  # of sums; what is written may be narrower
    format = ValueFormat[getattr(plan.selector, "to", "f32").upper()]
    values = format.size(unit_count(sent, plan.selector.width) * plan.selector.width)
    if plan.exchange.needs_shared:
        payload = values
    elif plan.shares_coordinates:
        payload, itemsize = message.HEADER.size + values, 1
    else:
        payload, itemsize = max(wire.letters), 1
    told = Traffic()
    if plan.agreement.tells:
        along = plan.agreement.goes_along(max(wire.letters))
        speakers = plan.agreement.speakers(turn, wire.weights)
        told = plan.agreement.traffic(wire.world, max(wire.letters if along else [wire.letters[s] for s in speakers]))
    exchanged = plan.exchange.traffic(wire.world, payload, itemsize)
    if plan.exchange.early and not plan.shares_coordinates:
        exchanged = Traffic(bytes_sent=exchanged.bytes_sent)  # in the round of the roll call
    return roll_call + told + exchanged


@pytest.mark.parametrize("world", [2, 3, 4, 5, 8])
def test_every_plan_delivers_one_mean_at_the_declared_cost(world):
    for plan in plans():
        results = run_threads(two_steps, world, plan, jitter=world)
        for result in results:
            if isinstance(result, BaseException):
                raise AssertionError(f"{plan}") from result
        for step in range(2):
            means = [result[step][0] for result in results]
            assert all(torch.equal(means[0], mean) for mean in means[1:]), f"ranks differ: {plan}"
            if not plan.feedback.momentum:
                wanted = sum(result[step][1] for result in results) / world
                scale = max(float(abs(result[step][1]).max()) for result in results) + 1e-30
                assert float((means[0].double() - wanted).abs().max()) <= 1e-6 * scale, f"another sum: {plan}"
            # Collective by collective: the busiest rank of one need not be the busiest of the next.
            counted = Traffic()
            for costs in zip(*(result[step][2] for result in results), strict=True):
                rounds = max(cost.rounds for cost in costs)  # a rank may have no part in one
                counted += Traffic(bytes_sent=max(cost.bytes_sent for cost in costs), rounds=rounds)
            wanted_cost = results[0][step][3]
            assert counted.rounds == wanted_cost.rounds, f"other rounds than declared: {plan}"
            # What depends on the data is counted in test_forecasts.
            if not plan.exchange.depends_on_data:
                assert counted == wanted_cost, f"another cost than declared: {plan}"


def test_parts_are_added_up_in_the_order_of_the_ranks_and_divided_by_their_number():
    """In float32 these four numbers have other sums in other orders."""
    numbers, world = (1e8, 1.0, -1e8, 1.0), 4

    def run(wire: ThreadWire, density: float) -> list[float]:
        fresh = torch.tensor([numbers[wire.rank], 0.0])
        turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
        plan = Plan(selector=TopK(density=density))
        return carry(Cargo(gradient=fresh, layout=Layout.of({"w": 2}), turn=turn), plan, Ledger(), wire).mean.tolist()

    for density in (0.5, 1.0):
        assert run_threads(run, world, density, jitter=3) == [[0.25, 0.0]] * world


def test_momentum_correction_is_deep_gradient_compression():
    """Against the two lines of the paper: u = m u + g; v = v + u; what is sent leaves both."""
    plan = Plan(selector=TopK(density=0.1), feedback=Feedback(momentum=0.9))

    def run(wire: ThreadWire) -> None:
        ledger = Ledger()
        u, v = torch.zeros(NUMEL), torch.zeros(NUMEL)
        for step in range(10):
            fresh = gradient("normal", NUMEL, 100 * step + wire.rank)
            turn = Turn(step=step, group=0, rank=wire.rank, world=wire.world)
            carried = carry(Cargo(gradient=fresh, layout=Layout.of({"w": NUMEL}), turn=turn), plan, ledger, wire)
            assert carried.page is not None
            carried.page.commit()
            u = u * 0.9 + fresh
            v = v + u
            chosen = v.abs().topk(plan.selector.budget(NUMEL)).indices
            u[chosen] = 0.0
            v[chosen] = 0.0
            torch.testing.assert_close(ledger.owed()["w"], v, rtol=0, atol=0)
            torch.testing.assert_close(ledger.velocities()["w"], u, rtol=0, atol=0)

    assert run_threads(run, 2) == [None, None]


def test_the_roll_call_costs_one_round():
    def run(wire: ThreadWire) -> Traffic:
        announce(wire, Record(what=What.VOTE, world=wire.world, generation=0, step=0, rank=wire.rank))
        wire.hear()
        return wire.traffic

    assert run_threads(run, 5) == [Traffic(bytes_sent=4 * SIZE, rounds=1)] * 5
