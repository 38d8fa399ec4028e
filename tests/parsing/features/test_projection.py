"""Features as policies read them: principal components of crops, standardized geometry."""

import numpy as np
import pytest

from aggrevated.parsing.features import symbols
from aggrevated.parsing.features.crops import draw_crops
from aggrevated.parsing.features.geometry import GEOMETRY, extract_geometry_features
from aggrevated.parsing.features.hog import extract_hog_features
from aggrevated.parsing.features.projection import COMPONENTS, Projection
from aggrevated.parsing.features.symbols import PIXELS, SYMBOLS, extract_raw_features, pad_features
from aggrevated.parsing.learners.parser_policies import KINDS, ParsingPolicy
from aggrevated.parsing.pages.handwriting import write_page

PAGES = [write_page(["x=3"], 1, 0), write_page(["10(x+2)=a+b", "c×d=e"], 2, 0)]


@pytest.fixture(scope="module")
def sample():
    """Return 700 symbols whose crops have more directions than components, each with a different variance."""
    generator = np.random.default_rng(0)
    pixels = generator.normal(size=(700, PIXELS)) * np.linspace(3.0, 0.1, PIXELS) + 0.5
    places = generator.normal(size=(700, len(GEOMETRY))) * np.arange(1, 9) - 2.0
    return np.concatenate([pixels, places], axis=1).astype(np.float32)


def test_raw_features_concatenate_hog_and_geometry_of_all_symbols():
    actual = extract_raw_features(PAGES)
    assert actual.shape == (3 + 16, 584) and actual.dtype == np.float32 and len(GEOMETRY) == 8
    for row, strokes in [(0, PAGES[0].ink[0]), (3, PAGES[1].ink[0]), (18, PAGES[1].ink[15])]:
        np.testing.assert_array_equal(actual[row, :576], extract_hog_features(draw_crops([strokes]))[0])
    np.testing.assert_array_equal(actual[:3, 576:], extract_geometry_features(PAGES[0].boxes))
    np.testing.assert_array_equal(actual[3:, 576:], extract_geometry_features(PAGES[1].boxes))


def test_raw_features_of_a_page_do_not_depend_on_other_pages():
    """Bit for bit, also after the projection; the pages fill more than one block of symbols, and end within one."""
    pages = [write_page(["10(x+2)=a+b", "c×d=e"], writer, 0) for writer in range(17)] + [PAGES[0]]
    together = extract_raw_features(pages)
    assert len(together) > 2 * SYMBOLS and len(together) % SYMBOLS
    projection = Projection.fit(together)
    np.testing.assert_array_equal(together, np.concatenate([extract_raw_features([page]) for page in pages]))
    np.testing.assert_array_equal(together, extract_raw_features(pages[::-1])[reversed_page_indices(pages)])
    alone = np.concatenate([projection(extract_raw_features([page])) for page in pages])
    np.testing.assert_array_equal(projection(together), alone)


def reversed_page_indices(pages):
    """Return the indices of the symbols when the last page comes first."""
    first = np.cumsum([0, *(len(page) for page in pages[:0:-1])])[::-1]
    return np.concatenate([start + np.arange(len(page)) for start, page in zip(first, pages, strict=True)])


def test_raw_features_rasterize_one_block_of_symbols_at_a_time(monkeypatch):
    """Memory and time per symbol do not grow with the number of pages."""
    drawn = []
    monkeypatch.setattr(symbols, "draw_crops", lambda ink: drawn.append(len(ink)) or draw_crops(ink))
    extract_raw_features([PAGES[1]] * 20)
    assert drawn == [SYMBOLS, SYMBOLS, 16 * 20 - 2 * SYMBOLS]


def test_feature_table_pads_pages_to_equal_length():
    actual = pad_features(np.array([2, 1, 3]), np.arange(12, dtype=float).reshape(6, 2))
    assert actual.dtype == np.float32
    assert actual.tolist() == [
        [[0, 1], [2, 3], [0, 0]],
        [[4, 5], [0, 0], [0, 0]],
        [[6, 7], [8, 9], [10, 11]],
    ]


def test_projection_of_crops_equals_principal_components_by_svd(sample):
    """Each component up to its sign; one scale for all, so that their mean variance is 1."""
    projection = Projection.fit(sample)
    actual = projection(sample)
    assert projection.width == actual.shape[1] == COMPONENTS + 8
    pixels = sample[:, :PIXELS].astype(float)
    left, singular, _ = np.linalg.svd(pixels - pixels.mean(axis=0), full_matrices=False)
    components = (left * singular)[:, :COMPONENTS]
    components /= np.sqrt((components**2).sum() / (len(sample) - 1) / COMPONENTS)
    np.testing.assert_allclose(np.abs(actual[:, :COMPONENTS]), np.abs(components), atol=2e-3)
    assert actual[:, :COMPONENTS].var(axis=0, ddof=1).mean() == pytest.approx(1.0, abs=1e-3)


def test_projection_standardizes_each_geometry_column(sample):
    actual = Projection.fit(sample)(sample)[:, COMPONENTS:]
    np.testing.assert_allclose(actual.mean(axis=0), 0.0, atol=1e-4)
    np.testing.assert_allclose(actual.std(axis=0), 1.0, atol=1e-4)
    places = sample[:, PIXELS:]
    for k in range(8):  # the constant column stays constant
        assert np.corrcoef(actual[:, k], places[:, k])[0, 1] == pytest.approx(1.0)


def test_projection_of_constant_columns_is_finite(sample):
    constant = sample.copy()
    constant[:, PIXELS + 2] = 7.0
    constant[:, :50] = 0.0
    actual = Projection.fit(constant)(constant)
    assert np.isfinite(actual).all() and np.abs(actual[:, COMPONENTS + 2]).max() < 1e-3
    few = Projection.fit(sample[:3])(sample[:3])  # fewer symbols than components
    assert np.isfinite(few).all()


def test_projection_without_geometry_keeps_the_first_columns(sample):
    projection = Projection.fit(sample)
    pictures = projection.drop_geometry()
    assert pictures.width == COMPONENTS and projection.width == COMPONENTS + 8
    np.testing.assert_allclose(pictures(sample[:9]), projection(sample[:9])[:, :COMPONENTS], rtol=1e-5, atol=1e-5)
    moved = sample[:9].copy()
    moved[:, PIXELS:] += 100.0
    np.testing.assert_array_equal(pictures(moved), pictures(sample[:9]))


@pytest.mark.parametrize("kind", KINDS)
def test_parsing_policy_state_has_its_projection_but_not_its_pages(sample, kind):
    projection = Projection.fit(sample)
    policy = ParsingPolicy(projection, 4, kind, hidden=4, embedding=3)
    policy.with_pages(np.ones((2, 5, projection.width), np.float32), np.array([5, 3]))
    weights = policy.state_dict()
    assert not {"features", "lengths"} & set(weights)
    other = ParsingPolicy(Projection.blank(), 4, kind, hidden=4, embedding=3, seed=1)
    other.load_state_dict(weights)
    np.testing.assert_array_equal(other.projection(sample[:9]), projection(sample[:9]))
    assert not any(
        name.startswith("projection") for name, _ in policy.named_parameters()
    )  # the projection is not learned
