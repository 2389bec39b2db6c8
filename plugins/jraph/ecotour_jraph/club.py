"""Zachary's karate club as a `jraph.GraphsTuple`: who met whom, and who went where.

W. W. Zachary (1977), "An Information Flow Model for Conflict and Fission in Small Groups",
Journal of Anthropological Research 33(4), 452-473. Mr. Hi, the instructor, is member 1; John A.,
the president, is member 34. After a quarrel over the price of lessons the club split in two.
"""

# %% [markdown]
# ## The table
#
# Zachary watched 34 members for two years and drew a tie between two who met outside the club:
# 78 ties, written here once each, from the member with the lower number. Members count from 1,
# as in the paper; arrays count from 0.

# %%
from __future__ import annotations

import jraph
import numpy as np

import ecotour

TIES = {
    1: (2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32),
    2: (3, 4, 8, 14, 18, 20, 22, 31),
    3: (4, 8, 9, 10, 14, 28, 29, 33),
    4: (8, 13, 14),
    5: (7, 11),
    6: (7, 11, 17),
    7: (17,),
    9: (31, 33, 34),
    10: (34,),
    14: (34,),
    15: (33, 34),
    16: (33, 34),
    19: (33, 34),
    20: (34,),
    21: (33, 34),
    23: (33, 34),
    24: (26, 28, 30, 33, 34),
    25: (26, 28, 32),
    26: (32,),
    27: (30, 34),
    28: (34,),
    29: (32, 34),
    30: (33, 34),
    31: (33, 34),
    32: (33, 34),
    33: (34,),
}
MEMBERS = 34
MR_HI, JOHN_A = 0, 33  # array positions of members 1 and 34, the only two labels we learn from

# %% [markdown]
# ## Two truths
#
# Zachary reports the *faction* that each member stood with in the quarrel (16 with Mr. Hi, 18 with
# John A.) and the *club* that each joined after the split (17 and 17). They differ in one person:
# member 9 stood with John A., but was three weeks from his black-belt test and stayed with his
# teacher. Zachary's own model of the conflict mispredicts this one member.

# %%
WITH_MR_HI = (1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 17, 18, 20, 22)
CHANGED_SIDES = 9

faction = np.ones(MEMBERS, np.int32)  # [34]: 0 stood with Mr. Hi, 1 with John A.
faction[np.array(WITH_MR_HI) - 1] = 0
club = faction.copy()  # [34]: 0 joined Mr. Hi's new club, 1 the old club's officers
club[CHANGED_SIDES - 1] = 0
for truth in (faction, club):
    truth.setflags(write=False)

# %% [markdown]
# ## The graph
#
# A `GraphsTuple` lists edges instead of filling an adjacency matrix: edge k runs from node
# `senders[k]` to node `receivers[k]`. Its edges are directed, so that a tie becomes two. The nodes
# carry no knowledge but who they are: a one-hot row each.


# %%
def graph() -> jraph.GraphsTuple:
    """The club: nodes `float32 [34, 34]`, senders and receivers `int32 [156]`."""
    lower = np.array([member for member, others in TIES.items() for _ in others], np.int32) - 1
    upper = np.array([other for others in TIES.values() for other in others], np.int32) - 1
    return jraph.GraphsTuple(
        nodes=np.eye(MEMBERS, dtype=np.float32),
        edges=None,
        senders=np.concatenate([lower, upper]),
        receivers=np.concatenate([upper, lower]),
        globals=None,
        n_node=np.array([MEMBERS], np.int32),
        n_edge=np.array([2 * len(lower)], np.int32),
    )


def dataset() -> ecotour.Dataset:
    """The two truths, for the record of which data a run stands on."""
    info = ecotour.DataInfo("Zachary's karate club", "published", "all members", MEMBERS)
    return ecotour.Dataset(info, {"faction": faction, "club": club})
