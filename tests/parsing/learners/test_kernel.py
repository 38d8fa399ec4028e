"""Kernel policy against scikit-learn's, its fit, and its saved state."""

import numpy as np
import pytest
import torch

from aggrevated.config.resolver import resolve_config
from aggrevated.core.errors import UsageError
from aggrevated.parsing.features.projection import Projection
from aggrevated.parsing.learners.kernel import ITEMS, SHARP, KernelPolicy, SupportVectorUpdate, compute_rbf_kernel, fit
from aggrevated.parsing.parser import Corpus, Parser
from aggrevated.parsing.scoring import evaluate_micro_uas
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.storage import digest_tensors
from helpers.parser_policies import WIDTH, corpus, demonstrated, features_of, page, reader

svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is not installed: pip install scikit-learn")
PAGES = corpus()


def make_blank_policy(seed=1):
    policy = KernelPolicy(Projection(np.zeros(WIDTH), np.eye(WIDTH)), 4)
    return policy.with_pages(features_of(PAGES, seed), PAGES.lengths)


def sample_observations(count, seed=0):
    """Return a page and nine numbers from −1, none, to 3."""
    generator = np.random.default_rng(seed)
    return np.concatenate(
        [generator.integers(len(PAGES.lengths), size=(count, 1)), generator.integers(-1, 4, (count, 9))], axis=1
    ).astype(np.float32)


def look_up_features(observations):
    """Return the features at these indices, one after the other: zeros for none, ones for ROOT."""
    features = features_of(PAGES)
    rows = []
    for which, *numbers in observations.astype(int):
        items = [np.zeros(WIDTH) if k == -1 else np.ones(WIDTH) if k == 0 else features[which, k - 1] for k in numbers]
        rows.append(np.concatenate(items))
    return np.array(rows, np.float32)


def test_rbf_kernel_matches_hand_computed_values():
    found = compute_rbf_kernel(
        np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[0.0, 0.0], [3.0, 2.0], [0.0, 1.0]]), gamma=0.5
    )
    np.testing.assert_allclose(found, np.exp(-0.5 * np.array([[0, 13, 1], [5, 4, 2]])), rtol=1e-12)


def test_kernel_policy_decision_values_match_scikit_learn_one_vs_rest():
    """scikit-learn's solver stops at 1e-3, which bounds the agreement; C and γ ("scale") are equal."""
    seen = sample_observations(250)
    fresh = sample_observations(100, seed=1)
    x = look_up_features(seen)
    z = look_up_features(fresh)
    actions = (x[:, :4] + 0.7 * x[:, 6:10]).argmax(axis=1)
    assert set(actions) == {0, 1, 2, 3}
    policy = make_blank_policy()
    fit(policy, policy.machine.gather_features(seen), actions, regularisation=3.0)
    found = policy.machine.predict(fresh)
    for action in range(4):
        machine = svm.SVC(C=3.0, kernel="rbf", gamma="scale").fit(x.astype(float), actions == action)
        np.testing.assert_allclose(found[:, action], machine.decision_function(z.astype(float)), atol=5e-3)
    assert 0 < len(policy.support) <= 250 and np.ptp(found) > 1
    tighter = make_blank_policy()
    fit(tighter, x, actions, regularisation=0.1)
    assert np.abs(tighter.machine.predict(fresh) - found).max() > 0.1  # C has an effect


def test_kernel_policy_and_actor_are_softmax_of_decision_values():
    policy = reader("kernel-svm", PAGES)
    seen = sample_observations(20).reshape(4, 5, 10)
    values = SHARP * policy.machine.predict(seen.reshape(20, 10)).astype(float)
    expected = np.exp(values - np.logaddexp.reduce(values, axis=1, keepdims=True)).reshape(4, 5, 4)
    found = policy.distribution(torch.from_numpy(seen), torch.ones(4, 5, dtype=torch.bool)).probs
    np.testing.assert_allclose(found, expected, atol=1e-5)
    parameters, memory = policy.actor().parameters(seen[:, 0], policy.actor().memory(4))
    np.testing.assert_allclose(parameters, values.reshape(4, 5, 4)[:, 0], atol=1e-4)
    assert memory.shape == (4, 0)


def test_fit_classifies_separable_data_without_errors():
    """The best action is the sign of one feature of the stack's top, and of the buffer's front."""
    seen = sample_observations(300)
    x = look_up_features(seen)
    clear = (np.abs(x[:, 0]) > 0.3) & (np.abs(x[:, 3 * WIDTH]) > 0.3)
    seen = seen[clear]
    x = x[clear]
    actions = 2 * (x[:, 0] > 0) + (x[:, 3 * WIDTH] > 0)
    assert np.bincount(actions, minlength=4).min() > 5
    policy = make_blank_policy()
    fit(policy, x, actions, regularisation=100.0)
    np.testing.assert_array_equal(policy.machine.predict(seen).argmax(axis=1), actions)


def test_fit_to_a_single_label_predicts_it_everywhere():
    policy = make_blank_policy()
    seen = sample_observations(10)
    fit(policy, look_up_features(seen), np.full(10, 2), regularisation=1.0)
    assert len(policy.support) == 0
    assert policy.machine.predict(sample_observations(5, 1)).tolist() == [[-1, -1, 1, -1]] * 5
    fit(policy, look_up_features(seen), np.array([0, 3] * 5), regularisation=1.0)
    assert (policy.machine.predict(seen)[:, 1:3] == -1).all()  # actions that the expert never took


def test_new_kernel_policy_has_no_preferences():
    assert not make_blank_policy().machine.predict(
        sample_observations(5)
    ).any() and make_blank_policy().support.shape == (0, ITEMS * WIDTH)


def test_kernel_policy_loads_weights_with_any_number_of_support_vectors():
    small = make_blank_policy()
    large = make_blank_policy()
    SupportVectorUpdate()(small, None, *demonstrated(PAGES, count=2))
    SupportVectorUpdate()(large, None, *demonstrated(PAGES, count=20))
    assert 0 < len(small.support) < len(large.support)
    observations = sample_observations(30)
    for source, target in ((large, small), (small, make_blank_policy()), (make_blank_policy(), large)):
        expected = source.machine.predict(observations)
        target.load_state_dict({name: w.clone() for name, w in source.state_dict().items()})
        np.testing.assert_array_equal(target.machine.predict(observations), expected)
        assert digest_tensors(target.state_dict()) == digest_tensors(source.state_dict())


def test_kernel_actor_is_unchanged_by_later_fits():
    policy = make_blank_policy()
    observations = sample_observations(30)
    update = SupportVectorUpdate()
    update(policy, None, *demonstrated(PAGES, n=1, count=3))
    actor = policy.actor()
    before = actor.parameters(observations, actor.memory(30))[0].copy()
    update(policy, None, *demonstrated(PAGES, n=2))
    np.testing.assert_array_equal(actor.parameters(observations, actor.memory(30))[0], before)
    assert (policy.actor().parameters(observations, actor.memory(30))[0] != before).any()


def test_kernel_actor_is_unchanged_by_loading_weights():
    policy = reader("kernel-svm", PAGES)
    observations = sample_observations(30)
    actor = policy.actor()
    before = actor.parameters(observations, actor.memory(30))[0].copy()
    policy.load_state_dict(make_blank_policy().state_dict())
    np.testing.assert_array_equal(actor.parameters(observations, actor.memory(30))[0], before)


def test_support_vector_update_fitted_to_expert_parses_training_pages():
    """Random features distinguish the pages: training pages are parsed nearly without errors."""
    policy = make_blank_policy()
    parser = Parser(PAGES, np.arange(len(PAGES.lengths)), in_order=True)
    before = evaluate_micro_uas(policy, parser)
    step = SupportVectorUpdate()(policy, None, *demonstrated(PAGES, count=100))
    assert step.loss > 0.2 and evaluate_micro_uas(policy, parser) > max(0.95, before)
    repeated = SupportVectorUpdate()(policy, None, *demonstrated(PAGES, count=100))
    assert repeated.loss < 0.05  # the error rate before the fit


def test_support_vector_update_loss_ignores_illegal_preferred_actions():
    """Only Shift and Right are legal on a page of one symbol, and Right is correct."""
    single = Corpus.from_pages([page([0])])
    policy = KernelPolicy(Projection(np.zeros(WIDTH), np.eye(WIDTH)), 4).with_pages(features_of(single), single.lengths)
    policy.intercepts = torch.tensor([0.0, 0.0, 1.0, 2.0])  # Reduce is preferred, then Right
    parses, expert_costs = demonstrated(single, count=3)
    assert SupportVectorUpdate()(policy, None, parses, expert_costs).loss == 0.0


def test_support_vector_update_aggregates_data_up_to_its_limit():
    policies = [make_blank_policy(), make_blank_policy(), make_blank_policy()]
    updates = [SupportVectorUpdate(), SupportVectorUpdate(), SupportVectorUpdate(most=20)]
    first = demonstrated(PAGES, n=1, count=4)
    second = demonstrated(PAGES, n=2, count=4)
    for policy, update, batches in zip(policies, updates, ((first, second), (second,), (first, second)), strict=True):
        for batch in batches:
            update(policy, None, *batch)
    assert len(policies[0].support) > len(policies[1].support)
    assert len(policies[2].support) <= 20
    assert updates[0].aggregation.seen == 8 and updates[1].aggregation.seen == 4


def test_support_vector_update_resumes_bit_identically():
    uninterrupted = SupportVectorUpdate(most=60, seed=3)
    policy = make_blank_policy()
    uninterrupted(policy, None, *demonstrated(PAGES, n=1))
    resumed = SupportVectorUpdate(most=60, seed=3)
    restored = make_blank_policy()
    assert SupportVectorUpdate().state() == {}
    resumed.restore({name: w.clone() for name, w in uninterrupted.state().items()})
    restored.load_state_dict({name: w.clone() for name, w in policy.state_dict().items()})
    for n in (2, 3):
        assert uninterrupted(policy, None, *demonstrated(PAGES, n)) == resumed(restored, None, *demonstrated(PAGES, n))
        assert digest_tensors(policy.state_dict()) == digest_tensors(restored.state_dict())


def test_support_vector_update_rejects_other_policies():
    policy = FeedForwardPolicy(10, CategoricalHead(4), hidden=())
    with pytest.raises(UsageError, match=r"support-vectors needs the policy kernel-svm; pass --policy kernel-svm"):
        SupportVectorUpdate()(policy, None, *demonstrated(PAGES, count=2))


def test_kernel_policy_selects_its_update_and_presets():
    config = resolve_config("algebra", "dagger", policy="kernel-svm")
    assert config.update.name == "support-vectors"
    assert (config.loop.iterations, config.loop.trajectories, config.loop.alpha_start) == (8, 64, 1.0)
    assert resolve_config("algebra", "sl", policy="kernel-svm").update.name == "support-vectors"


@pytest.mark.parametrize(
    ("method", "update", "policy", "words"),
    [
        ("dagger", "regular", "kernel-svm", "the policy kernel-svm cannot be learned by the update regular"),
        ("dagger", "follow-the-leader", "kernel-svm", "kernel-svm cannot be learned by the update follow-the-leader"),
        ("dagger", "support-vectors", "lstm", "the policy lstm cannot be learned by the update support-vectors"),
        (
            "aggrevated",
            None,
            "kernel-svm",
            "the policy kernel-svm needs expert actions; choose --method dagger or sl",
        ),
        (
            "aggrevated",
            "support-vectors",
            "contextual",
            "the policy contextual cannot be learned by the update support-vectors",
        ),
        ("dagger", None, "mlp", "unknown policy 'mlp': choose one of contextual, lstm, reactive, kernel-svm"),
    ],
)
def test_resolve_config_rejects_mismatched_policies_and_updates(method, update, policy, words):
    with pytest.raises(UsageError, match=words):
        resolve_config("algebra", method, update=update, policy=policy)


def test_kernel_policy_rejects_supervised_start():
    with pytest.raises(UsageError, match="--start is supervised, but must be random for the policy kernel-svm"):
        resolve_config("algebra", "dagger", policy="kernel-svm", start="supervised")


def test_control_tasks_reject_kernel_policy_and_its_update():
    with pytest.raises(UsageError, match="unknown policy 'kernel-svm'"):
        resolve_config("cartpole", "dagger", policy="kernel-svm")
    shipped = "exponentiated, follow-the-leader, natural, searn, smile, regular"
    with pytest.raises(UsageError, match=f"unknown update 'support-vectors': choose one of {shipped}$"):
        resolve_config("cartpole", "dagger", update="support-vectors")
