"""Graph networks with Jraph: one small graph, and many of different sizes.

Read it from top to bottom; ``ecotour run jraph`` runs it. Its parts have modules of their own:
`karate.py` (one graph), `rumours.py` (the task on many graphs), `layers.py`, `feeds.py`.
"""

# %% [markdown]
# ## What you will see
#
# A graph has no order and no fixed size: no image, no table. Jraph puts graphs into a few flat
# arrays, a `GraphsTuple`, so that JAX can compile and differentiate what is computed on them.
#
# 1. **One graph** (`karate.py`). Zachary's karate club: two of 34 members tell where they went
#    when the club split; a network finds out about the others from who met whom.
# 2. **Many graphs** (here). A rumour starts at one node of a random graph: who hears it, along
#    which edges does it spread, does everybody hear it? Learned on graphs of 6 to 16 nodes, asked
#    on graphs of 24 to 48.
# 3. **Three ways to feed them** (`feeds.py`), and what each costs in compilations, padding, time.
#
# `layers.py` holds the three layers that are compared: convolution, attention and messages.

# %%
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import haiku as hk
import jax
import jax.numpy as jnp
import jraph
import optax

import ecotour
from ecotour import exhibits
from ecotour_jraph import club, feeds, gallery, karate, rumours, verdict
from ecotour_jraph.descent import Training, descend
from ecotour_jraph.layers import LAYERS

SMALL, LARGE = (6, 16), (24, 48)  # nodes of a graph, both ends included
SMALL_BUDGET = rumours.Budget(n_node=256, n_edge=576, n_graph=33)
LARGE_BUDGET = rumours.Budget(n_node=512, n_edge=1280, n_graph=33)
ROUNDS = (8, 16)  # of listening, drawn anew for each training step
STEPS = 500


# %% [markdown]
# ## Configuration


# %%
@dataclass(frozen=True)
class Config:
    """Each field is a command-line flag."""

    seeds: int = ecotour.flag(100, "networks trained side by side on the karate club", at_least=1)
    graphs: int = ecotour.flag(2000, "small graphs to train on", at_least=100, at_most=100_000)
    width: Literal[16, 32, 64] = ecotour.flag(32, "numbers that a node keeps in mind")
    learning_rate: float = ecotour.flag(
        3e-3, "Adam's largest step size on the many graphs", above=0
    )


# %% [markdown]
# ## The network
#
# One layer again and again, with the same weights in each round: so the rounds may differ in
# number, few while training on small graphs, more on larger ones. The loop runs `most` times, and
# what comes after `rounds` changes nothing: XLA wants to know a loop's length where gradients
# flow back through it.
#
# In each round a node is told again whether it is the root. This *recall* keeps the question from
# being forgotten where the loop runs longer than in training (Bansal et al. 2022,
# arXiv:2202.05826). Of 16 networks trained without it, one had learned little after 500 steps, and
# two that were right after 16 rounds told no more graphs after 24 than one who guesses. Of 16
# trained with it, each still told 94% of them.
#
# The bias of `read_root` starts at random. Were it 0, as usual, all nodes but the root would start
# as zeros, where the slope of a layer normalisation is 1 / sqrt(1e-5), about 316: after 8 rounds
# the gradient would be 1e19.
#
# Three answers are read off at the end: from each node, from the two ends of each edge, and from
# the largest of each feature over all nodes of a graph.


# %%
def network(layer: str, width: int, most: int) -> hk.Transformed:
    """`apply(params, graph, rounds)` gives logits for nodes `[N]`, edges `[E]` and graphs `[G]`."""

    def listen_and_answer(
        graph: jraph.GraphsTuple, rounds: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        listen, remember = LAYERS[layer](width), hk.Linear(width, name="remember")
        normalise = hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)
        read_root = hk.Linear(width, b_init=hk.initializers.RandomNormal(), name="read_root")
        start = read_root(graph.nodes["root"])
        graph = graph._replace(nodes=start, edges=None, globals=None)

        def one_round(number: jax.Array, nodes: jax.Array) -> jax.Array:
            heard = listen(graph._replace(nodes=nodes)).nodes
            news = jax.nn.leaky_relu(remember(jnp.concatenate([nodes, heard, start], axis=-1)))
            return jnp.where(number < rounds, normalise(nodes + news), nodes)

        graph = graph._replace(nodes=hk.fori_loop(0, most, one_round, start))
        of_node = hk.Linear(1, name="of_node")
        of_edge = hk.nets.MLP([width, 1], name="of_edge")
        of_graph = hk.nets.MLP([width, 1], name="of_graph")
        answers = jraph.GraphNetwork(
            update_edge_fn=lambda _, sender, receiver, __: of_edge(
                jnp.concatenate([sender, receiver], axis=-1)
            ),
            update_node_fn=None,
            update_global_fn=lambda nodes, _, __: of_graph(nodes),
            aggregate_nodes_for_globals_fn=jraph.segment_max_or_constant,
        )(graph)
        return of_node(graph.nodes)[:, 0], answers.edges[:, 0], answers.globals[:, 0]

    return hk.without_apply_rng(hk.transform(listen_and_answer))


# %% [markdown]
# ## The loss, under masks
#
# A batch is one `GraphsTuple` of the budget's shape. Its padding graph is computed like the
# others, but must not teach: `jraph.get_node_padding_mask` and its sisters say which rows are
# real, and each mean goes over these alone.


# %%
def loss_of(
    params: hk.Params, graph: jraph.GraphsTuple, rounds: jax.Array, layer: str, width: int
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """The sum of three mean cross-entropies in nats, and three accuracies, by name."""
    logits = network(layer, width, ROUNDS[1]).apply(params, graph, rounds)
    labels = (graph.nodes["reached"], graph.edges["outward"], graph.globals["connected"])
    masks = (
        jraph.get_node_padding_mask(graph),
        jraph.get_edge_padding_mask(graph),
        jraph.get_graph_padding_mask(graph),
    )
    loss, accuracies = jnp.float32(0), {}
    for name, logit, label, mask in zip(rumours.ASKED, logits, labels, masks, strict=True):
        each = optax.losses.sigmoid_binary_cross_entropy(logit, label.astype(logit.dtype))
        loss += each.mean(where=mask)
        accuracies[f"{name}_accuracy"] = jnp.mean((logit > 0) == label, where=mask)
    return loss, accuracies


# %% [markdown]
# ## Before the first step, and one step
#
# The state is `Training`: parameters, e.g. "read_root" `w [1, 32]`, and Adam's running means. The
# runner's batch has one example, a packed batch of some 22 graphs: hence the `[0]`.
#
# The number of rounds is drawn anew for each step. A network that always listens 8 times learns
# answers that are right for a while and then fall apart: five of eight such networks guess after
# 20 rounds. One that cannot know when it will be asked learns answers that stay.


# %%
def optimizer(config: Config) -> optax.GradientTransformation:
    """Adam on gradients of norm 1 at most; its step size rises for 50 steps, then falls to 0.

    Without the slow start some networks fall, about step 40, into giving everybody one answer.
    """
    schedule = optax.warmup_cosine_decay_schedule(0.0, config.learning_rate, 50, STEPS)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))


@partial(jax.jit, static_argnames=("layer", "width"))
def first_params(layer: str, width: int, key: jax.Array, graph: jraph.GraphsTuple) -> hk.Params:
    """Random parameters; of `graph` only the shapes count."""
    return network(layer, width, ROUNDS[1]).init(key, graph, jnp.int32(1))


def init(layer: str, config: Config, key: jax.Array, batch: Mapping[str, Any]) -> Training:
    """Random parameters, and running means of zero."""
    graph = rumours.unflat({name: array[0] for name, array in batch.items()})
    params = first_params(layer, config.width, key, graph)
    return Training(params, optimizer(config).init(params))


@partial(jax.jit, static_argnames=("layer", "config"))
def step(
    layer: str, config: Config, state: Training, batch: Mapping[str, Any], key: jax.Array
) -> tuple[Training, dict[str, jax.Array]]:
    """Update the network once. Metrics: the loss, and three accuracies on this batch."""
    graph = rumours.unflat({name: array[0] for name, array in batch.items()})
    rounds = jax.random.randint(key, (), ROUNDS[0], ROUNDS[1] + 1)
    loss = partial(loss_of, layer=layer, width=config.width)
    state, value, accuracies = descend(optimizer(config), loss, state, graph, rounds)
    return state, {"loss": value} | accuracies


# %% [markdown]
# ## What to look at
#
# One of the larger graphs, as the network sees it after 12 rounds: coloured by its belief that a
# node hears the rumour, with a ring around the root.


# %%
@partial(jax.jit, static_argnames=("layer", "width"))
def answers(
    layer: str, width: int, params: hk.Params, graph: jraph.GraphsTuple, rounds: jax.Array
) -> tuple[jax.Array, ...]:
    """Logits for nodes `[N]`, edges `[E]` and graphs `[G]`, after 24 rounds at the most."""
    node, edge, whole = network(layer, width, verdict.ROUNDS[-1]).apply(params, graph, rounds)
    return node, edge, whole


def view(
    layer: str, config: Config, large: ecotour.Dataset, state: Training, key: jax.Array
) -> dict[str, exhibits.Exhibit]:
    """The first of the larger graphs."""
    graph = rumours.unflat({name: array[0] for name, array in large.arrays.items()})
    logits, _, _ = answers(
        layer, config.width, state.params, graph, jnp.int32(verdict.JUDGED_ROUNDS)
    )
    return {"rumour": gallery.rumour_picture(graph, jax.nn.sigmoid(logits))}


# %% [markdown]
# ## The program
#
# Nine named steps, one after the other: three networks on the club, three on rumours, three
# feeds. The feeds train the messages network with plain gradient descent, a smaller program to
# compile over and over.


# %%
def feed(batches: str, config: Config, graphs: feeds.Graphs) -> ecotour.Step:
    """The named step that measures one feed; its `step` is one pass over the graphs."""
    loss = partial(loss_of, layer="messages", width=config.width)

    def update(params: hk.Params, graph: jraph.GraphsTuple) -> tuple[hk.Params, jax.Array]:
        (value, _), gradient = jax.value_and_grad(loss, has_aux=True)(
            params, graph, jnp.int32(ROUNDS[0])
        )
        return jax.tree.map(lambda weight, slope: weight - 0.01 * slope, params, gradient), value

    make = partial(first_params, "messages", config.width)
    measured = feeds.Feed(feeds.FEEDS[batches], graphs, make, update)
    return ecotour.Step(measured.init, measured.step, steps=feeds.PASSES, compiled=False)


def build(config: Config) -> ecotour.Program:
    """Draw the graphs and make the program of one configuration."""
    small = rumours.random_graphs(0, config.graphs, SMALL)
    large = rumours.dataset("test", rumours.random_graphs(1, 200, LARGE), LARGE_BUDGET)
    steps = {f"karate-{kind}": karate.step_of(kind, config.seeds) for kind in karate.KINDS}
    for layer in LAYERS:
        steps[f"rumours-{layer}"] = ecotour.Step(
            init=partial(init, layer, config),
            step=partial(step, layer, config),
            steps=STEPS,
            view=partial(view, layer, config, large),
            lower_is_better={"loss": True},
        )
    for name in feeds.FEEDS:
        steps[f"feed-{name}"] = feed(name, config, small[: feeds.GRAPHS])
    return ecotour.Program(
        steps=steps,
        judge=partial(verdict.judge, partial(answers, width=config.width)),
        data={
            "train": rumours.dataset("train", small, SMALL_BUDGET),
            "test": large,
            "club": club.dataset(),
        },
        batch_size=1,
    )


# %% [markdown]
# ## The hook
#
# How ecotour finds all this: `pyproject.toml` names this module, and this function is its answer.
# What the run must reach to be called a success is in `verdict.py`.


# %%
@ecotour.hookimpl
def ecotour_demo() -> ecotour.Demo:
    """Provide the demo."""
    return ecotour.Demo(
        summary="Graph networks with Jraph: one small graph, and many of different sizes",
        config=Config,
        build=build,
        teaches=(
            "How graphs of any size become flat arrays that JAX can compile: GraphsTuple batches, "
            "padding and masks. What convolution, attention and messages can learn and how far "
            "they see; what two labels can tell about 34 people; and why feeding graphs as they "
            "come makes a compiler work all day."
        ),
    )
