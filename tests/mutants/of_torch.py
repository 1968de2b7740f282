"""Mutants of what lies between DDP and the exchanges: buckets, threads, checkpoints, attaching and leaving."""

from tests.mutants.mutant import Mutant

FAULTS = "tests/distributed/test_faults.py::"
LIFE = "tests/distributed/test_ddp_life.py::"
RESUME = "tests/distributed/test_resume.py::"
WIRE = "tests/distributed/test_wire.py::"
CORNERS = "tests/distributed/test_corners.py::"
SAVED = "tests/wire/test_saved.py::test_damaged_and_foreign_states_are_refused"

ONE_THREAD = f"{WIRE}test_one_thread_starts_all_collectives"

OF_TORCH = (
    Mutant(
        name="key-debts-by-bucket",
        safeguard="Debts are kept by parameter name: DDP rebuilds its buckets after the first step",
        file="sync.py",
        old="names = [self._names[id(parameter)] for parameter in bucket.parameters()]",
        new='names = [f"{bucket.index()}/{place}" for place, _ in enumerate(bucket.parameters())]',
        tests=(f"{LIFE}test_two_models_at_once",),
    ),
    Mutant(
        name="ignore-the-loss-scale",
        safeguard="Debts follow the loss scale",
        file="sync.py",
        old="        if self._scaler is not None:\n",
        new="        if False:\n",
        tests=("tests/distributed/test_amp.py::test_debts_follow_the_loss_scale",),
    ),
    Mutant(
        name="commit-a-failed-step",
        safeguard="A step that failed changes no debt and does not count",
        file="sync.py",
        old="step is None or not step.complete or step.failure is not None",
        new="step is None or not step.complete",
        tests=(f"{FAULTS}test_an_exception_on_one_rank_is_an_error_on_all[leader]",),
    ),
    Mutant(
        name="swallow-the-error",
        safeguard="The backward pass of a failed step raises",
        file="sync.py",
        old="            self._close()\n            raise error\n",
        new="            self._close()\n",
        tests=(f"{FAULTS}test_a_fault_in_the_hook_leaves_ddp_usable",),
    ),
    Mutant(
        name="swallow-the-error-in-join",
        safeguard="So it is for a rank without data inside join, which has no backward pass",
        file="sync.py",
        old="            return future.then(lambda done: value_or_error(step, done))\n",
        new="            return future\n",
        tests=(f"{FAULTS}test_an_error_inside_join_reaches_the_rank_without_data",),
    ),
    Mutant(
        name="count-half-a-step",
        safeguard="A step whose backward pass was interrupted does not count",
        file="sync.py",
        old="step is None or not step.complete or step.failure is not None",
        new="step is None or step.failure is not None",
        tests=(f"{CORNERS}test_half_a_step_does_not_count",),
    ),
    Mutant(
        name="settle-in-the-middle",
        safeguard="Nobody may look at debts while a backward pass is running",
        file="sync.py",
        old="        if in_backward():\n            raise SyncError",
        new="        if False:\n            raise SyncError",
        tests=(f"{CORNERS}test_looking_changes_nothing",),
    ),
    Mutant(
        name="raise-inside-the-hook",
        safeguard="What goes wrong in the hook itself comes out behind DDP, which stays usable",
        file="sync.py",
        old="            step.failure = step.failure or error\n            groups = []\n",
        new="            raise\n",
        tests=(f"{FAULTS}test_a_fault_in_the_hook_leaves_ddp_usable",),
        also=("KeyError", "RuntimeError"),
    ),
    Mutant(
        name="exchange-inside-the-hook",
        safeguard="One thread, the courier's, starts all collectives: not the threads of the backward pass",
        file="sync.py",
        old="        self._courier.submit(job)\n        if not backward:\n",
        new="        job()\n        if not backward:\n",
        tests=(ONE_THREAD,),
    ),
    Mutant(
        name="exchange-in-a-callback",
        safeguard="Nor a callback of a future",
        file="sync.py",
        old="        self._courier.submit(job)\n        if not backward:\n",
        new=(
            "        import threading\n\n        ready = torch.futures.Future()\n        ready.then(lambda _: job())\n"
            "        threading.Thread(target=ready.set_result, args=(None,)).start()\n        if not backward:\n"
        ),
        tests=(ONE_THREAD,),
    ),
    Mutant(
        name="a-thread-for-each-bucket",
        safeguard="Nor a thread for each bucket",
        file="courier.py",
        old="        self._jobs.put(job)\n",
        new="        threading.Thread(target=job).start()\n",
        tests=(ONE_THREAD,),
    ),
    Mutant(
        name="rows-made-dense",
        safeguard="Row-sparse gradients travel as the rows that were touched",
        file="rows.py",
        old="    rows = gradient.detach().coalesce()\n",
        new=(
            "    every, whole = torch.arange(gradient.shape[0]).unsqueeze(0), gradient.detach().to_dense()\n"
            "    rows = torch.sparse_coo_tensor(every, whole, gradient.shape, is_coalesced=True)\n"
        ),
        tests=(
            f"{LIFE}test_sparse_embeddings_stay_sparse"
            "[TopK(density=0.1, width=1) -> Own(seed=0) -> Delta() -> AllGather()-one row]",
        ),
    ),
    Mutant(
        name="a-dense-mean-of-rows",
        safeguard="Their mean is sparse as well",
        file="rows.py",
        old="    return Carried(mean=mean, seen=seen,",
        new="    return Carried(mean=mean.to_dense(), seen=seen,",
        tests=(f"{LIFE}test_synchronize_without_ddp",),
    ),
    Mutant(
        name="tell-no-overflow-of-rows",
        safeguard="A sparse gradient that is not finite on one rank is known to all",
        file="rows.py",
        old="overflow=not finite)",
        new="overflow=False)",
        tests=(f"{LIFE}test_a_sparse_overflow_is_known_to_all",),
    ),
    Mutant(
        name="flush-and-forget",
        safeguard="What a flush cannot write in the parameter's type stays owed",
        file="flush.py",
        old="ledger.settle(name, mean - plain.to(mean.dtype) * ledger.scale)",
        new="ledger.settle(name)",
        tests=("tests/distributed/test_amp.py::test_a_flush_owes_what_it_rounds_off",),
    ),
    Mutant(
        name="flush-beside-old-gradients",
        safeguard="After a flush the optimizer does not find the last step's gradients once more",
        file="sync.py",
        old="        for parameter in parameters.values():\n            parameter.grad = None\n",
        new="",
        tests=(f"{CORNERS}test_flush_leaves_no_stale_gradient[False]",),
    ),
    Mutant(
        name="flush-frozen-parameters",
        safeguard="A parameter that was frozen keeps its debt through a flush",
        file="sync.py",
        old="for name, mean in means.items() if parameters[name].requires_grad}",
        new="for name, mean in means.items()}",
        tests=(f"{CORNERS}test_a_frozen_parameter_keeps_its_debt",),
    ),
    Mutant(
        name="flush-in-two-minds",
        safeguard="A flush that failed changes no debt",
        file="sync.py",
        old="        self._courier.submit(job)\n        self._courier.wait()\n",
        new=(
            "        self._courier.submit(job)\n        self._courier.wait()\n"
            "        for name in parameters:\n            self._ledger.settle(name)\n"
        ),
        tests=(f"{FAULTS}test_a_failed_flush_changes_nothing",),
    ),
    Mutant(
        name="flush-without-a-vote",
        safeguard="A flush ends with a vote",
        file="sync.py",
        old="step.turn(), step.wire)))\n            step.vote()\n",
        new="step.turn(), step.wire)))\n",
        tests=(f"{FAULTS}test_a_failed_flush_changes_nothing",),
    ),
    Mutant(
        name="use-the-rooms-of-a-broken-step",
        safeguard="Memory that an abandoned operation may still write into is never used again",
        file="sync.py",
        old="        self._ledger.rooms.clear()\n",
        new="",
        tests=(f"{FAULTS}test_memory_of_a_broken_step_is_not_used_again",),
    ),
    Mutant(
        name="use-the-rooms-of-a-broken-synchronize",
        safeguard="So it is without DDP",
        file="standalone.py",
        old="            if step.wire.broken:\n",
        new="            if False:\n",
        tests=(f"{FAULTS}test_memory_of_a_broken_synchronize_is_not_used_again",),
    ),
    Mutant(
        name="load-any-rank",
        safeguard="The state of another rank is refused",
        file="saved.py",
        old="    if saved.rank != rank:\n",
        new="    if False:\n",
        tests=(f"{SAVED}[another rank]",),
    ),
    Mutant(
        name="load-any-world",
        safeguard="The state of another number of ranks is refused",
        file="saved.py",
        old="    if saved.world != world:\n",
        new="    if False:\n",
        tests=(f"{SAVED}[another world]",),
    ),
    Mutant(
        name="load-any-model",
        safeguard="The state of another model is refused",
        file="saved.py",
        old="    if unknown := [name for name in named if name not in parameters]:\n",
        new="    if unknown := []:\n",
        tests=(f"{SAVED}[a group of another model]",),
    ),
    Mutant(
        name="load-any-debt",
        safeguard="A saved debt that is not finite is refused",
        file="saved.py",
        old="    if not is_finite(tensor.detach()):\n",
        new="    if False:\n",
        tests=(f"{SAVED}[a debt that is not a number]",),
    ),
    Mutant(
        name="load-any-size",
        safeguard="A saved debt of another size or type is refused",
        file="saved.py",
        old="_is_plain(tensor, wanted) or tensor.shape != (parameter.numel(),)",
        new="_is_plain(tensor, wanted)",
        tests=(f"{SAVED}[a debt too short]",),
    ),
    Mutant(
        name="load-a-parameter-twice",
        safeguard="A parameter in two saved groups is refused",
        file="saved.py",
        old="    if len(set(every)) != len(every):\n",
        new="    if False:\n",
        tests=(f"{SAVED}[a parameter in two groups]",),
    ),
    Mutant(
        name="forget-the-groups",
        safeguard="A resumed run cuts its buckets as the run that it continues",
        file="sync.py",
        old="        self._remembered = list(saved.groups)\n",
        new="        self._remembered = []\n",
        tests=(f"{RESUME}test_a_resumed_run_is_the_uninterrupted_run[own-2]",),
    ),
    Mutant(
        name="forget-the-step",
        safeguard="A resumed run goes on counting, so the next leader leads and the next lots are drawn",
        file="sync.py",
        old="        self._ledger.steps = saved.steps\n",
        new="        self._ledger.steps = 0\n",
        tests=(f"{RESUME}test_a_resumed_run_is_the_uninterrupted_run[seeded-2]",),
    ),
    Mutant(
        name="forget-the-plan",
        safeguard="A resumed run goes on with the plan it had",
        file="sync.py",
        old="        self._steer(pilot)\n",
        new="",
        tests=(f"{RESUME}test_a_resumed_run_is_the_uninterrupted_run[own-2]",),
    ),
    Mutant(
        name="save-in-the-order-of-memory",
        safeguard="Debts are saved so that a model with other strides can load them",
        file="sync.py",
        old="owed={name: logical(debt, parameters[name]) for",
        new="owed={name: debt for",
        tests=(f"{CORNERS}test_debts_are_saved_in_the_order_of_indices",),
    ),
    Mutant(
        name="load-in-any-order",
        safeguard="And loaded in the order that the model has now",
        file="sync.py",
        old="owed = {name: physical(debt, parameters[name]) for",
        new="owed = {name: debt for",
        tests=(f"{CORNERS}test_debts_are_saved_in_the_order_of_indices",),
    ),
    Mutant(
        name="keep-the-model-alive",
        safeguard="A model that is dropped is gone, and its synchroniser and thread with it",
        file="sync.py",
        old="        self._model = weakref.ref(model)\n",
        new="        self._model = lambda: model\n",
        tests=(f"{CORNERS}test_a_dropped_model_leaves_neither_memory_nor_threads",),
    ),
    Mutant(
        name="leave-the-hook",
        safeguard="A detached model is plain DDP",
        file="sync.py",
        old="        if not self._attached:\n            return plain_mean(buffer, self._ranks)\n",
        new="",
        tests=("tests/distributed/test_neutrality.py::test_a_detached_model_is_plain_ddp_whatever_the_plan_was",),
    ),
    Mutant(
        name="attach-twice",
        safeguard="A model is attached once",
        file="sync.py",
        old="        if self._attached:\n            raise AttachError",
        new="        if False:\n            raise AttachError",
        tests=(f"{LIFE}test_bad_attachments_say_what_to_do",),
    ),
)
