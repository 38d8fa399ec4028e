"""Tag sentences word by word, gold tags being the expert: python tagger.py [--seed N] [--small]."""

import argparse
import copy
import json
import time
from itertools import islice

import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import nn

from aggrevated import (
    AdvantageOracle,
    CategoricalHead,
    ExponentiatedUpdate,
    Learner,
    Policy,
    QStarOracle,
    aggrevated,
    all_actions_loss,
)

WORDS = 300
TAGS = 6
LENGTH = 12
MEANINGS = np.random.default_rng(0).integers(TAGS, size=(2, WORDS))  # the two tags that a word may have


class Tagger:  # a state: the words, their gold tags, how many are tagged, the learner's last tag
    name = "tagger"
    horizon = LENGTH
    observation_space = Box(0.0, WORDS, (2,))
    action_space = Discrete(TAGS)

    def reset(self, seeds):  # a sentence for each seed; the tag before a word decides which of its tags it has
        words = np.stack([np.random.default_rng(int(seed)).integers(WORDS, size=LENGTH) for seed in seeds])
        gold = np.zeros_like(words)
        before = np.zeros(len(seeds), int)
        for i in range(LENGTH):
            gold[:, i] = before = MEANINGS[before % 2, words[:, i]]
        return np.concatenate([words, gold, np.zeros((len(seeds), 2), int)], axis=1)

    def observe(self, state):  # the word, and the tag that the learner gave to the one before
        return np.stack([state[np.arange(len(state)), state[:, -2]], state[:, -1]], axis=1).astype(np.float32)

    def step(self, state, action):  # a wrong tag costs 1
        following = np.concatenate([state[:, :-2], state[:, -2:-1] + 1, action[:, None]], axis=1)
        return following, Gold().q(state)[np.arange(len(state)), action], following[:, -2] == LENGTH


class Gold:  # the expert: what each tag costs from here on, when gold tags follow
    name = "gold tags"

    def act(self, states, t):
        return states[np.arange(len(states)), LENGTH + states[:, -2]]

    def q(self, states):
        return (np.arange(TAGS) != self.act(states, None)[:, None]).astype(float)


class Embedding(Policy):  # words and tags are looked up, and two layers choose
    memoryless = True

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, 32)
        self.tags = nn.Embedding(TAGS, 32)
        self.head = CategoricalHead(TAGS)
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, TAGS))

    def logits(self, observations):  # [..., 2] to [..., TAGS]
        word, before = observations.long().unbind(-1)
        return self.layers(torch.cat([self.words(word), self.tags(before)], dim=-1))

    def distribution(self, observations, mask, legal=None):  # of whole sentences, to learn from
        return self.head.distribution(self.logits(observations), legal)

    def actor(self):  # the policy as it is now, word by word
        return Steps(copy.deepcopy(self))


class Steps:
    def __init__(self, policy):
        self.policy = policy
        self.noise = policy.head.sampler().noise
        self.choose = policy.head.sampler().choose

    def memory(self, count):
        return np.zeros((count, 0), np.float32)

    def parameters(self, observation, memory):
        with torch.no_grad():
            return self.policy.logits(torch.from_numpy(observation)).numpy(), memory


def returns(choose, sentences):  # (mean, standard error) of minus the wrong tags in a fresh sentence
    state = Tagger().reset(np.arange(sentences) + 2**40)
    total = np.zeros(sentences)
    for _ in range(LENGTH):
        state, cost, _ = Tagger().step(state, choose(state))
        total -= cost
    return [round(float(total.mean()), 3), round(float(total.std() / sentences**0.5), 3)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    torch.set_num_threads(1)  # more make so small a network slower
    tagger = Tagger()
    gold = Gold()
    policy = Embedding()
    iterations = 3 if given.small else 40

    def tag(state):
        return policy.predict(tagger.observe(state), deterministic=True)[0]

    said = {"seed": given.seed}
    said |= {"expert": returns(lambda state: gold.act(state, 0), 1000), "first": returns(tag, 1000)}
    learner = Learner(policy, ExponentiatedUpdate())
    began = time.perf_counter()
    learning = aggrevated(learner, tagger, gold, AdvantageOracle(QStarOracle(gold)), all_actions_loss, seed=given.seed)
    for iteration in islice(learning, iterations):
        print(iteration.n, iteration.current_return)
    seconds = round(time.perf_counter() - began, 1)
    policy.load_state_dict(learner.best.weights)
    said |= {"chosen": returns(tag, 1000), "simulator_steps": learner.simulator_steps, "seconds": seconds}
    print(json.dumps(said))
