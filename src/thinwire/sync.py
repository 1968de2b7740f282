"""A model's synchroniser: DDP's buckets in, the courier's results out, and everything a user may ask of it."""

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from thinwire.asked import DEFAULT_PATIENCE, LossScale, check_model, check_patience, plan_or_default
from thinwire.control.controller import Controller
from thinwire.control.pilot import Pilot
from thinwire.courier import Packer
from thinwire.errors import AttachError, SyncError
from thinwire.flush import deliver, mean_debts
from thinwire.layout import Group, Layout, Span, layout_of, split
from thinwire.ledger import Ledger
from thinwire.membership import Membership
from thinwire.observe.stats import Counter, Stats
from thinwire.plain import plain_mean, promise, value_or_error
from thinwire.plans import Plan
from thinwire.saved import Saved, pack, unpack
from thinwire.step import Sent, Step
from thinwire.torch_names import GradBucket, at_end_of_backward, in_backward
from thinwire.units import logical, physical


class SyncState:
    """Synchronises the gradients of one DDP model. The state of the communication hook `thinwire.hook`.

    `thinwire.attach` makes one and registers it. By hand it takes two lines, as with torch's own hooks:

        state = thinwire.SyncState(ddp_model, plan)
        ddp_model.register_comm_hook(state, thinwire.hook)

    Making one is a collective operation: every rank must do it.
    """

    def __init__(
        self,
        model: DistributedDataParallel,
        plan: Plan | Controller | None = None,
        *,
        scaler: LossScale | None = None,
        patience: float = DEFAULT_PATIENCE,
    ) -> None:
        """Prepare to synchronise a model. The arguments, and what is raised, are those of `thinwire.attach`."""
        self._membership: Membership
        self._counter: Counter
        check_model(model)
        # DDP's C++ side holds this object where the garbage collector cannot see it: a strong reference back to the
        # model would keep both alive for ever.
        self._model = weakref.ref(model)
        self._ranks = model.process_group
        ignored = set(model.parameters_to_ignore)
        managed = {n: p for n, p in model.module.named_parameters() if p.requires_grad and n not in ignored}
        self._managed = frozenset(managed)
        self._names = {id(parameter): name for name, parameter in managed.items()}
        # A parameter that no rank used keeps its gradient: DDP throws away what is delivered for it.
        self._hold_silent = bool(model.find_unused_parameters or model.static_graph)
        self._generation = 0
        self._ledger = Ledger()
        self._remembered: list[tuple[str, ...]] = []
        self._groups: list[tuple[str, ...]] = []
        self._step: Step | None = None
        self._attached = False
        self._damaged: list[Membership] = []
        self.open(plan, scaler=scaler, patience=patience)

    # What DDP calls --------------------------------------------------------------------------------------------

    def on_bucket(self, bucket: GradBucket) -> torch.futures.Future[Tensor]:
        """Take a bucket whose gradients are ready; DDP goes on with its backward pass at once.

        Args:
            bucket: As DDP gives it.

        Returns:
            A future that completes with the mean. After a failed step it completes with NaN, and `backward` raises.
        """
        buffer = bucket.buffer()
        if not self._attached:
            return plain_mean(buffer, self._ranks)
        if bucket.index() == 0 or self._step is None:
            self._begin()
        step = self._step
        assert step is not None
        self._pilot.bucket()
        future = promise(buffer)
        try:
            groups = self._groups_of(bucket)
        except Exception as error:
            step.failure = step.failure or error
            groups = []
        last, backward = bucket.is_last(), in_backward()

        def pack() -> Callable[[], None]:
            sent = step.send_bucket(buffer, groups, hold_silent=self._hold_silent)
            return partial(receive, sent)

        def receive(sent: Sequence[Sent]) -> None:
            result = step.receive_bucket(buffer, groups, sent)
            if last:
                step.vote()
                step.complete = not backward
            future.set_result(result)

        self._courier.submit(pack)
        if not backward:
            # Inside `join`, only the future itself can carry an error.
            return future.then(lambda done: value_or_error(step, done))
        if last:
            # Callbacks run in the order they are queued, and DDP queues its own right behind its last bucket. So ours
            # comes before DDP takes over the results, and what that one queues comes when DDP is done: an error
            # raised there leaves DDP fit for another try.
            at_end_of_backward(self._before_ddp_finishes)
        return future

    def _begin(self) -> None:
        """A new step: what the last one left open is settled, and a switched plan comes into force."""
        self._close()
        self._cut = False
        self._ledger.rooms.sweep()
        self._step = self._new_step()
        self._step.pilot = self._pilot
        self._pilot.begin()
        try:
            if self._scaler is not None:
                self._ledger.rescale(float(self._scaler.get_scale()))
        except Exception as error:
            self._step.failure = error

    def _new_step(self) -> Step:
        return Step(
            plan=self._pilot.plan,
            ledger=self._ledger,
            wire=self._membership.wire,
            counter=self._counter,
            generation=self._generation,
            parameters=self._parameters() if self._pilot.plan.looks_at_parameters else {},
        )

    def _before_ddp_finishes(self) -> None:
        self._pilot.backward_ended()
        self._courier.wait()
        self._pilot.step_ended()
        if self._step is not None:
            self._step.spoil()
        at_end_of_backward(self._after_ddp_finished)

    def _after_ddp_finished(self) -> None:
        step = self._step
        if step is None:
            return
        step.complete = True
        step.results.clear()
        if (error := step.error()) is not None:
            self._close()
            raise error

    def _groups_of(self, bucket: GradBucket) -> list[Group]:
        """The bucket by parameter names, cut as the run that is being resumed had it."""
        names = [self._names[id(parameter)] for parameter in bucket.parameters()]
        if bucket.buffer().is_sparse:
            return [Group(Layout((Span(names[0], 0, bucket.buffer().numel()),)))]
        layout = layout_of(bucket.buffer(), bucket.gradients(), names)
        groups = split(layout, self._remembered) if self._remembered else [Group(layout)]
        self._cut |= bool(groups[0].places)
        return groups

    # What users call -------------------------------------------------------------------------------------------

    @property
    def broken(self) -> str | None:
        """Why the group of ranks is not used any more, if so; see `rejoin`."""
        return self._membership.wire.broken

    @property
    def plan(self) -> Plan:
        """The plan of the next step, as far as that is decided."""
        return self._pilot.plan

    def explain(self) -> str:
        """Why this plan: what was second, by how much, and what the wire is like."""
        return self._pilot.explain()

    def told_loss(self, loss: float) -> None:
        """Tell the controller the loss of this step, on any ranks: where it jumps, more of the gradient is sent."""
        self._pilot.loss = float(loss)

    def stats(self) -> Stats:
        """What was sent, how long each stage took, how much of the gradient's energy went through. Changes nothing."""
        step = self._step
        unsettled = step is not None and step.complete and step.failure is None
        return self._counter.stats(str(self._pilot.plan), self._ledger.steps + unsettled)

    def switch(self, plan: Plan | Controller) -> None:
        """Change the plan from the next step on. Debts stay. Call it with the same plan on every rank.

        Args:
            plan: Any plan; `recipes.dense()` is one too. `recipes.adaptive()` lets a controller choose.

        Raises:
            PlanError: This is no plan.
        """
        self._steer(Pilot(plan_or_default(plan)))

    def _steer(self, pilot: Pilot) -> None:
        self._pilot = pilot
        pilot.listen(self._membership.wire.pace)

    def skip_step(self) -> None:
        """The optimizer does not use the last step's gradients: put every debt back to what it was. On every rank.

        Call it before anything else that looks at debts (`state_dict`, `flush`): they settle the step. Not needed with
        a GradScaler: steps with gradients that are not finite are put back by themselves.

        Raises:
            SyncError: There is no step to skip: none was done, or it is settled.
        """
        if self._step is None or not self._step.complete:
            raise SyncError("there is no step to skip: call skip_step() right after backward, on every rank")
        self._step.skipped = True
        self._settle()

    def flush(self) -> dict[str, Tensor]:
        """Deliver everything still owed, densely: at the end of training, or before the number of ranks changes.

        Call it on every rank between two steps, then step the optimizer once. Every ``grad`` is *replaced* by the mean
        of what the ranks owed for it, without the loss scale, or by None where nothing is owed. A parameter that
        was frozen meanwhile keeps its debt.

        Returns:
            What was delivered, by parameter name; empty if nothing was owed.

        Raises:
            SyncError: The ranks do not agree, or one failed; all debts are as before.
        """
        if not self._attached:
            raise AttachError("this model is detached and owes nothing; flush before detach, or attach again")
        self._settle()
        parameters = self._parameters()
        step = self._new_step()
        means: dict[str, Tensor] = {}

        def job() -> None:
            step.apart(lambda: means.update(mean_debts(parameters, self._ledger, step.plan, step.turn(), step.wire)))
            step.vote()

        self._courier.submit(lambda: job)
        self._courier.wait()
        if (error := step.error()) is not None:
            raise error
        for parameter in parameters.values():
            parameter.grad = None
        used = {name: mean for name, mean in means.items() if parameters[name].requires_grad}
        return {name: deliver(name, parameters[name], mean, self._ledger) for name, mean in used.items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on bitwise: tensors and plain numbers only. Each rank saves and loads its own."""
        self._settle()
        parameters = self._parameters()
        saved = Saved(
            rank=self._membership.wire.rank,
            world=self._membership.wire.world,
            steps=self._ledger.steps,
            scale=self._ledger.scale,
            plan=self._pilot.plan,
            mind=self._pilot.save(),
            groups=self._groups or self._remembered,
            owed={name: logical(debt, parameters[name]) for name, debt in self._ledger.owed().items()},
            velocity={name: logical(each, parameters[name]) for name, each in self._ledger.velocities().items()},
        )
        return pack(saved)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken, plan included. On every rank, each with its own state.

        Args:
            state: What `state_dict` returned; ``torch.load(..., weights_only=True)`` reads it.

        Raises:
            StateError: It is another rank's, another world's or another model's. Nothing was changed then.
        """
        wire = self._membership.wire
        parameters = self._parameters()
        saved = unpack(state, rank=wire.rank, world=wire.world, parameters=parameters)
        pilot = Pilot.load(saved.plan, *saved.mind)
        self._settle()
        self._steer(pilot)
        self._remembered = list(saved.groups)
        self._groups = []
        owed = {name: physical(debt, parameters[name]) for name, debt in saved.owed.items()}
        velocities = {name: physical(each, parameters[name]) for name, each in saved.velocity.items()}
        self._ledger.load(owed, velocities, saved.scale)
        self._ledger.steps = saved.steps

    def rejoin(self) -> None:
        """Form a new group of the same ranks after the old one was damaged. On every rank; debts and plan stay.

        Some errors say that the group is not used again: a rank gave up in the middle of an exchange, or a
        connection was lost. If all ranks are still there, this is how they go on.
        """
        self._settle()
        # An operation may still run in a damaged group, so that is kept, and write into rooms, so those are not.
        self._ledger.rooms.clear()
        self._damaged.append(self._membership)
        for membership in self._damaged:
            membership.close()
        self._generation += 1
        self._membership = Membership(self._ranks, self._patience, self._generation)
        self._steer(self._pilot.reset())

    def detach(self) -> None:
        """Go back to plain DDP. What is still owed is forgotten: flush first.

        DDP cannot unregister a hook, so it stays and takes the plain mean. `thinwire.attach` attaches again.
        """
        if not self._attached:
            return
        self._settle()
        if any(bool(debt.any()) for debt in self._ledger.owed().values()):
            warnings.warn(
                "detached with debts outstanding: call flush() and step the optimizer once before detach()",
                stacklevel=2,
            )
        self._attached = False
        self._courier.stop()
        self._membership.close()
        self._ledger = Ledger()

    # Life ------------------------------------------------------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Whether gradients go through thinwire (and not through a plain mean, after `detach`)."""
        return self._attached

    def open(
        self,
        plan: Plan | Controller | None = None,
        *,
        scaler: LossScale | None = None,
        patience: float = DEFAULT_PATIENCE,
    ) -> None:
        """Form the group of ranks and start; `attach` calls it. Collective. The arguments are those of `attach`.

        Raises:
            AttachError: This synchroniser is attached already.
        """
        if self._attached:
            raise AttachError("this model is attached already; to change the plan call sync.switch(plan)")
        wanted = plan_or_default(plan)
        check_patience(patience)
        self._scaler, self._patience = scaler, patience
        self._generation += 1
        self._membership = Membership(self._ranks, self._patience, self._generation)
        self._steer(Pilot(wanted))
        self._courier = Packer("thinwire")
        self._counter = Counter()
        self._cut, self._step = False, None
        self._attached = True

    def _settle(self) -> None:
        """Settle the open step, for somebody who is about to look at debts.

        Raises:
            SyncError: A step is being computed.
        """
        if in_backward():
            raise SyncError("a backward pass is running: call this between two steps, not from a hook")
        self._close()

    def _close(self) -> None:
        """The open step counts now; or it never happened, if it failed, or was interrupted half way."""
        if not self._attached:
            return
        self._courier.wait()
        step, self._step = self._step, None
        if step is None or not step.complete or step.failure is not None:
            return
        step.commit()
        self._pilot.turn()
        self._groups = step.names
        if not self._cut:
            self._remembered = []  # DDP has built its final buckets

    def _parameters(self) -> dict[str, Tensor]:
        """All parameters that may owe, by name, in one order on all ranks."""
        model = self._model()
        if model is None:
            raise AttachError("this synchroniser's model is gone; keep a reference to the DDP model while you train")
        return {name: p for name, p in model.module.named_parameters() if name in self._managed}

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """A copied or saved model comes without its synchroniser, as it comes without its process group."""
        return type(None), ()
