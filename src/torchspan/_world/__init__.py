# SPDX-License-Identifier: MIT
"""The other ranks: find them, decide with them, work with them, and end together.

**Rendezvous.** Every rank opens one TCP connection, its line, to rank 0, the hub (``_hub``,
``_spoke``). The only thing that differs between launchers is what carries the hub's address and a
secret token to the others (``_rendezvous``): the store at MASTER_ADDR and MASTER_PORT where these
are set, as torchrun does; a locked file that no leftover can be taken for, on one host
(``_jobfile``); the first host of Slurm's list with a port made from the job's name (``_slurm``);
one broadcast by mpi4py (``_mpi``). Over the lines each rank says what it is, and rank 0 decides for
all (``_backend``): NCCL or XCCL only where no two ranks share an accelerator, since these refuse or
hang otherwise; the network interface that really leads to the others, since gloo would take the
one of the host's name. Then torch.distributed starts (``_session``), and data never touches the
lines.

**Failure.** A process that ends closes its line, whatever ended it: the kernel does it. So the hub
learns of a killed rank within milliseconds, of a host that lost its network within 20 s by TCP
keep-alives, and never takes a rank for dead that only computes for an hour without letting Python
run, as a heartbeat sent by a thread would. A rank that an exception leaves says so over its line
before it ends. The first failure wins and goes to every rank. There (``_guard``) the connections of
gloo are shut down, because gloo has no abort and would block for as long as the others live
(``_connections``); NCCL and XCCL are aborted; and SIGTERM, sent by this process to itself, raises
``RankError`` in the main thread, out of sleep, input and computation alike. Launchers send the
other ranks SIGTERM too when one ends badly; the handler makes that rank's error of it. Ranks that
end by a failure wait for each other for a moment, the failed one going first, so that all can say
what happened before the launcher kills them.

**Leaving.** A rank that has finished says so and goes; that is no failure. Rank 0 goes last,
because it holds the lines and mostly the store.

**The last resort.** A main thread inside one native call that neither returns nor lets a signal
in cannot be given an exception. Left alone it would hang for ever, with the job's allocation, so
after 20 s its process is ended with the error on stderr. Nothing else here ends a process. Where
such a call also keeps Python's lock, not even that is possible, and the launcher's kill remains.
"""

from torchspan._world._join import join
from torchspan._world._world import World

__all__ = ["World", "join"]
