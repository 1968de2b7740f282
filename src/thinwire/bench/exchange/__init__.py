"""How fast gradients meet: thinwire's plans beside other ways, on real ranks and real gradients.

How it measures. Every way (a *contestant*) gets the same message: what each rank of a real training run owed before it
selected anything (the last step of a trace of `thinwire.traces`). They take turns, in another order in every round, so
that noise hits all alike. A turn makes the method anew, lets it exchange once to warm up (buffers, and whatever it
learns from step to step: for PowerSGD this is the very gradient that it is then measured on, which favours it), empties
its memory of what was not sent, and then times some exchanges. Who is so slow that this would take too long is not
warmed up. All ranks begin at the same moment of their common clock where they have one; the time of an exchange ends
when the last rank has its mean. Bytes are those that the system's TCP counts for this process, without the headers of
TCP and IP.

What is checked. Every rank must have the same bits. Where a method keeps what it does not send, the mean that it
delivers must be the mean of what was taken out of the debts, at 4096 positions. A method that sends everything must
deliver the mean of all elements. What fails is counted as ``#wrong``.

Gain is the energy of the true mean that arrives: ``1 - |mean - delivered|^2 / |mean|^2``, for every method by the same
formula, computed from inputs and outputs alone.

How to add a contestant: a `Method`, and a `Contestant` that makes it. A module with a function
``contestants(densities)`` can be given to the command with ``--peers``; ``benchmarks/peers`` of a checkout is one.
"""
