"""What a feature may say, in Python and in a file, and what a wrong one is told."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from tidemill.config.pipeline_file import PipelineDefinition, read
from tidemill.errors import DefinitionError
from tidemill.features import (
    Feature,
    FeatureView,
    aggregate,
    approx_distinct,
    argmax,
    argmin,
    bloom,
    bool_and,
    bool_or,
    count,
    cuckoo,
    distinct,
    first,
    first_k,
    first_seen,
    last,
    last_k,
    last_seen,
    max_,
    mean,
    min_,
    most_frequent,
    quantiles,
    ratio,
    stddev,
    sum_,
    top_k,
    variance,
)
from tidemill.features.aggregates import SHIPPED

SCHEMA = {
    "card": "string",
    "kind": "string",
    "shop": "string?",
    "amount": "double",
    "points": "bigint",
    "price": "decimal(10, 3)",
    "ok": "boolean",
}
EVERY_WORD: list[Feature] = [
    count(),
    count().by("kind", ["buy", "look"]),
    count().where("amount > 50 AND kind = 'buy'").named("large"),
    count().by("size", ["big"]).where("ok").named("fine"),
    sum_("points"),
    sum_("amount", scale=2),
    sum_("price").where("shop IN ('a', 'it\\'s')").named("here"),
    mean("amount", scale=2),
    mean("points").empty(0),
    variance("amount", scale=2),
    stddev("points").empty(-1.5).named("spread"),
    min_("amount"),
    max_("price").empty(0.125),
    argmin("shop", "amount"),
    argmax("shop", "price").by("kind", ["buy"]),
    first("shop").empty("it's none"),
    last("shop"),
    first_k("shop", 3),
    last_k("shop", 1000),
    first_seen(),
    last_seen().where("NOT ok").named("not_ok"),
    top_k("amount", 1),
    most_frequent("shop", 20),
    distinct("shop"),
    distinct("kind", limit=5),
    approx_distinct("shop", precision=14).named("exacter"),
    quantiles("amount"),
    quantiles("price", [0, 0.25, 1], k=400),
    bool_and("ok"),
    bool_or("ok"),
    bloom("shop", capacity=50),
    cuckoo("shop", capacity=50, error=0.001),
    ratio("large_count", "count").named("share"),
    ratio("buy_count", "points_sum").named("dear").empty(0),
]
WINDOWS = [("1h", None), ("7d", None), ("30s", None), ("12h", "1d"), ("90m", "30d")]


def declare(features: Any, **words: Any) -> FeatureView:
    given = {"name": "sales", "keys": ["card"], "event_time": "at", "schema": SCHEMA}
    chosen = {"size": ("string", "IF(amount > 50, 'big', 'small')")}
    return FeatureView(**{**given, "select": chosen, "features": features, **words})


def over(feature: Feature, window: str, ago: str | None = None) -> Feature:
    there = feature.over(window)
    return there.offset(ago) if ago else there


# -- Python and YAML -----------------------------------------------------------------------------


def test_every_verb_is_tried() -> None:
    assert {feature.aggregate for feature in EVERY_WORD} == {*SHIPPED, "ratio"}


@pytest.mark.parametrize(("window", "ago"), WINDOWS)
def test_a_file_says_what_python_says(window: str, ago: str | None) -> None:
    bucket = "30s" if window == "30s" else "1m"
    view = declare([over(f, window, ago) for f in EVERY_WORD], bucket=bucket)
    text = yaml.safe_dump(view.words(), sort_keys=False)
    again = FeatureView.model_validate(yaml.safe_load(text))
    assert again == view
    assert again.definition == view.definition
    assert again.words() == view.words()
    assert [c.name for c in again.columns] == [c.name for c in view.columns]


@pytest.mark.parametrize(
    "feature", EVERY_WORD, ids=lambda f: "_".join(filter(None, (f.label, f.aggregate)))
)
def test_a_verb_is_its_aggregate_by_name(feature: Feature) -> None:
    said = feature.over("1h", "2h")
    assert Feature.model_validate(said.words()) == said
    bare = aggregate(feature.aggregate, **feature.inputs, **feature.parameters)
    assert (bare.inputs, bare.parameters) == (feature.inputs, feature.parameters)


def test_every_word_of_a_view_comes_back() -> None:
    words = {"bucket": "5m", "history": "40d", "source": "shop", "when_empty": "delete"}
    view = declare([count().over("1h")], keep_empty="1d", **words)
    assert {n: view.words()[n] for n in words} == words
    assert FeatureView.model_validate(yaml.safe_load(yaml.safe_dump(view.words()))) == view


def test_short_forms_are_the_long_ones() -> None:
    short = yaml.safe_load("[{count: , over: [1h]}, {sum: points, over: [1h]}]")
    long = yaml.safe_load("[{count: {}, over: [1h]}, {sum: {of: points}, over: [1h]}]")
    assert (
        declare(short) == declare(long) == declare([count().over("1h"), sum_("points").over("1h")])
    )


def test_python_is_told_at_once() -> None:
    for wrong in (
        lambda: count().by("kind", []),
        lambda: count().by("kind", ["a b"]),
        lambda: count().offset("1h"),
        lambda: count().named("1st"),
        lambda: count().empty(0),
        lambda: ratio("a", "b").where("ok"),
        lambda: top_k("amount", 0),
        lambda: sum_("points", scale=10),
        lambda: quantiles("amount", [2.0]),
        lambda: aggregate("cuont"),
        lambda: aggregate("sum", of="points", k=3),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(DefinitionError):
        count().over("soon")


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "names"),
    [
        (count().over("1h"), ["count_1h"]),
        (count().by("kind", ["b", "a"]).over("1h"), ["b_count_1h", "a_count_1h"]),
        (count().named("large").over("1h"), ["large_count_1h"]),
        (sum_("points").over("60m", "1d"), ["points_sum_1d", "points_sum_60m"]),
        (sum_("points").named("p").by("kind", ["buy"]).over("1h"), ["buy_p_sum_1h"]),
        (argmax("shop", "amount").over("1h"), ["shop_argmax_1h"]),
        (first_seen().over("1h").offset("1d"), ["first_seen_1h_1d_ago"]),
        (count().over("1h", "2h").offset("3h"), ["count_2h_3h_ago", "count_1h_3h_ago"]),
    ],
)  # fmt: skip
def test_columns_are_named_by_value_input_aggregate_and_window(
    feature: Feature, names: list[str]
) -> None:
    assert [column.name for column in declare([feature]).shown] == names


def test_terms_are_kept_beside_the_features_only_where_all_add_up() -> None:
    adds_up = declare([mean("points").over("1h"), sum_("points").over("1h")])
    assert [c.name for c in adds_up.columns if c.hidden] == [
        "__points_n_1h",
        "__overflowed",
    ]
    does_not = declare([mean("points").over("1h"), min_("points").over("1h")])
    assert [c.name for c in does_not.columns if c.hidden] == ["__overflowed"]
    cannot = declare([count().over("1h"), min_("points").over("1h")])
    assert not [c.name for c in cannot.columns if c.hidden]


# -- what is wrong -------------------------------------------------------------------------------

FILE = """\
pipeline: sales
source: {kind: files}
views:
  - name: sales
    keys: [card]
    event_time: at
    schema:
      card: string
      kind: string
      shop: string?
      amount: double
      points: bigint
      price: decimal(10, 3)
      ok: boolean
    select:
      size: {string: "kind"}
    features:
      - {count: {}, over: [1h]}
"""
FEATURE = "{count: {}, over: [1h]}"
LINE = len(FILE.splitlines())


def refused(folder: Path, text: str) -> DefinitionError:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DefinitionError) as caught:
        read(path)
    assert str(caught.value.where).startswith(str(path))
    str(caught.value).encode()
    return caught.value


def test_the_file_is_right() -> None:
    assert PipelineDefinition.model_validate(yaml.safe_load(FILE)).views[0].columns


WRONG_FEATURES = [
    ("{cuont: {}, over: [1h]}", "unknown aggregate 'cuont'; did you mean 'count'?"),
    ("{count: {}}", "'over' takes a list of windows"),
    ("{count: {}, over: []}", "'over' takes a list of windows"),
    ("{count: {}, over: 1h}", "'over' takes a list of windows"),
    ("{count: {}, over: [90s]}", "window '90s' is not a multiple of the bucket of 1m"),
    ("{count: {}, over: [1h], offset: 30s}", "is not a multiple of the bucket of 1m"),
    ("{count: {}, over: [31d]}", "'31d' is too long"),
    ("{count: {}, over: [1h], offset: 400d}", "history 400d is shorter than 1h_400d_ago"),
    ("{count: {}, over: [1h], offset: 999999999d}", "'999999999d' is too long"),
    ("{count: {}, over: [1h], offset: 0}", "'0' is no length of time"),
    ("{count: {}, over: [1h, 1h]}", "feature 'count_1h' is declared twice"),
    ("{count: {}, sum: points, over: [1h]}", "a feature has one aggregate"),
    ("{over: [1h]}", "a feature has one aggregate"),
    ("{count: {}, ovr: [1h], over: [1h]}", "a feature has one aggregate"),
    ("{count: {of: points}, over: [1h]}", "count takes no 'of'"),
    ("{count: 5, over: [1h]}", "count takes words such as"),
    ("{sum: {}, over: [1h]}", "sum takes a column: of"),
    ("{sum: pionts, over: [1h]}", "unknown column 'pionts' in view sales; did you mean 'points'?"),
    ("{sum: at, over: [1h]}", "unknown column 'at'"),
    ("{sum: kind, over: [1h]}", "sum takes a number, kind is STRING"),
    ("{mean: ok, over: [1h]}", "mean takes a number, ok is BOOLEAN"),
    ("{sum: amount, over: [1h]}", "takes a scale"),
    ("{variance: amount, over: [1h]}", "takes a scale"),
    ("{sum: {of: points, scale: 2}, over: [1h]}", "points is BIGINT, which is exact: no scale"),
    ("{mean: {of: price, scale: 3}, over: [1h]}", "which is exact: no scale"),
    ("{sum: {of: amount, scale: 10}, over: [1h]}", "'scale' takes a whole number from 0 to 9"),
    ("{sum: {of: amount, scale: 1.5}, over: [1h]}", "'scale' takes a whole number from 0 to 9"),
    ("{sum: {of: amount, scale: true}, over: [1h]}", "'scale' takes a whole number from 0 to 9"),
    ("{sum: {of: amount, scal: 2}, over: [1h]}", "sum takes no 'scal'; did you mean 'scale'?"),
    ("{argmax: {of: shop}, over: [1h]}", "argmax takes a column: at"),
    ("{argmax: {of: shop, at: amuont}, over: [1h]}", "did you mean 'amount'?"),
    ("{top_k: {of: amount}, over: [1h]}", "top_k takes a number: k, a whole number from 1 to 1000"),
    ("{top_k: {of: amount, k: 0}, over: [1h]}", "'k' takes a whole number from 1 to 1000, found 0"),
    ("{top_k: {of: amount, k: 1001}, over: [1h]}", "from 1 to 1000, found 1001"),
    ("{top_k: {of: amount, k: .inf}, over: [1h]}", "from 1 to 1000, found inf"),
    ("{top_k: {of: amount, k: .nan}, over: [1h]}", "from 1 to 1000, found nan"),
    ("{top_k: {of: amount, k: '2'}, over: [1h]}", "from 1 to 1000, found '2'"),
    ("{most_frequent: {of: shop, k: 101}, over: [1h]}", "from 1 to 100"),
    ("{quantiles: {of: amount, at: []}, over: [1h]}", "'at' takes a list of numbers"),
    ("{quantiles: {of: amount, at: 0.5}, over: [1h]}", "'at' takes a list of numbers"),
    ("{quantiles: {of: amount, at: [1.01]}, over: [1h]}", "'at' takes a number from 0 to 1"),
    ("{quantiles: {of: amount, at: [.nan]}, over: [1h]}", "'at' takes a number from 0 to 1"),
    ("{approx_distinct: {of: shop, precision: 22}, over: [1h]}", "from 4 to 21"),
    ("{bloom: {of: shop}, over: [1h]}", "bloom takes a number: capacity"),
    ("{bloom: {of: shop, capacity: 0}, over: [1h]}", "'capacity' takes a whole number from 1"),
    ("{bloom: {of: shop, capacity: 22001}, over: [1h]}", "to 22000"),
    ("{bloom: {of: shop, capacity: 5, error: 0}, over: [1h]}", "takes a number from 0.0001"),
    ("{cuckoo: {of: shop, capacity: 5, error: 0.31}, over: [1h]}", "to 0.3"),
    ("{bloom: {of: amount, capacity: 5}, over: [1h]}", "bloom takes no double"),
    ("{bool_or: points, over: [1h]}", "bool_or takes a boolean, points is BIGINT"),
    ("{count: {by: {kind: buy}}, over: [1h]}", "takes a list of values"),
    ("{count: {by: {kind: []}}, over: [1h]}", "takes a list of values"),
    ("{count: {by: {kind: [a], shop: [b]}}, over: [1h]}", "'by' takes one column"),
    ("{count: {by: kind}, over: [1h]}", "'by' takes one column"),
    ("{count: {by: {points: [a]}}, over: [1h]}", "'by' takes a string column"),
    ("{count: {by: {knid: [a]}}, over: [1h]}", "unknown column 'knid'"),
    ("{count: {by: {kind: [a, a]}}, over: [1h]}", "declared twice"),
    ("{count: {by: {kind: [a-b]}}, over: [1h]}", "'a-b' is not an identifier"),
    ("{count: {}, over: [1h], name: 1st}", "'1st' is not an identifier"),
    ("{count: {}, over: [1h], name: __x}", "'__x' is not an identifier"),
    ("{count: {}, over: [1h], name: naïve}", "is not an identifier"),
    ("{count: {}, over: [1h], name: ''}", "is not an identifier"),
    ("{count: {}, over: [1h], name: 5}", "valid string"),
    ("{count: {}, over: [1h], empty: 0}", "has its own value over an empty window"),
    ("{mean: points, over: [1h], empty: none}", "'empty' takes a DOUBLE"),
    ("{mean: points, over: [1h], empty: .nan}", "'empty' takes a DOUBLE"),
    ("{min: points, over: [1h], empty: 0.5}", "'empty' takes a BIGINT"),
    ("{min: points, over: [1h], empty: 9223372036854775808}", "'empty' takes a BIGINT"),
    ("{max: price, over: [1h], empty: 0.0005}", "'empty' takes a DECIMAL(10,3)"),
    ("{max: price, over: [1h], empty: 10000000}", "'empty' takes a DECIMAL(10,3)"),
    ("{last: shop, over: [1h], empty: 5}", "'empty' takes a STRING"),
    ("{last: shop, over: [1h], empty: '${env:HOME}'}", "'empty' takes a STRING"),
    ("{first_seen: , over: [1h], empty: '2026-11-21'}", "'empty' takes a TIMESTAMP"),
    ("{ratio: {of: count, to: points_sum}, over: [1h]}", "a ratio takes a name"),
    ("{ratio: {of: count}, over: [1h], name: r}", "ratio takes a feature: to"),
    ("{ratio: {of: count, to: count, by: 1}, over: [1h], name: r}", "'by' takes one column"),
    ("{ratio: {of: count, to: count}, over: [1h], name: r, where: ok}", "takes no 'by' and no"),
    ("{ratio: {of: count, to: count, by: {kind: [a]}}, over: [1h], name: r}", "takes no 'by' and"),
    ("{ratio: {of: cuont, to: cuont}, over: [1h], name: r}", "ratio names no feature 'cuont'"),
    ("{aggregate: count, windows: [{length: 1h, text: x}]}", "instance of Window"),
    ("{count: {}, over: [1h], where: 5}", "'where' takes a text"),
    ("{count: {}, over: [1h], where: kind}", "is no condition"),
    ("{count: {}, over: [1h], where: points + 1}", "is no condition"),
    ("{count: {}, over: [1h], where: length(kind)}", "is no condition"),
]  # fmt: skip


@pytest.mark.parametrize(("feature", "message"), WRONG_FEATURES)
def test_a_wrong_feature(tmp_path: Path, feature: str, message: str) -> None:
    error = refused(tmp_path, FILE.replace(FEATURE, feature))
    assert message in str(error)
    assert str(error.where).startswith(f"{tmp_path / 'mine.yaml'}:{LINE}: views[0].features[0]")


def test_a_ratio_takes_numbers_of_this_view(tmp_path: Path) -> None:
    more = "      - {last: kind, over: [1h]}\n"
    more += "      - {ratio: {of: kind_last, to: count}, name: r, over: [1h]}\n"
    error = refused(tmp_path, FILE + more)
    assert str(error) == (
        f"{tmp_path / 'mine.yaml'}:{LINE + 2}: views[0].features[2]: "
        "a ratio takes numbers, kind_last is STRING"
    )


def test_two_features_that_would_keep_different_things(tmp_path: Path) -> None:
    more = "      - {count: {}, where: ok, over: [2h]}\n"
    error = refused(tmp_path, FILE + more)
    assert "two features keep different things as 'count': give one a name" in str(error)
    assert f":{LINE + 1}: views[0].features[1]" in str(error)


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("keys: [card]", "keys: [crad]", 5, "views[0].keys", "did you mean 'card'?"),
        ("keys: [card]", "keys: [shop]", 10, "schema.shop", "key 'shop' may not be absent"),
        ("keys: [card]", "keys: [at]", 5, "views[0].keys", "unknown column 'at'"),
        ("keys: [card]", "keys: [card, card]", 4, "views[0]", "declared twice"),
        ("card: string", "count_1h: string", 5, "views[0].keys", "unknown column 'card'"),
        ("kind: string\n", "kind: text\n", 9, "views[0].schema.kind", "unknown type 'text'"),
        ("kind: string\n", '"true": string\n', 4, "views[0]", "own names"),
        ("kind: string\n", "batch: string\n", 4, "views[0]", "Tidemill's own names"),
        ("kind: string\n", "Card: string\n", 4, "views[0]", "declared twice"),
        ("price: decimal(10, 3)", "price: decimal(19, 3)", 13, "price", "at most 18 digits"),
        ("price: decimal(10, 3)", "price: decimal(2, 3)", 13, "price", "more digits after"),
        ("event_time: at", "event_time: at\n    bucket: 7m", 7, "bucket", "does not divide"),
        ("event_time: at", "event_time: at\n    bucket: 2h", 7, "bucket", "does not divide"),
        ("event_time: at", "event_time: at\n    bucket: 0m", 7, "views[0].bucket", "no length"),
        ("event_time: at", "event_time: at\n    history: 30m", LINE + 1, "features[0]", "shorter"),
        ("event_time: at", "event_time: at\n    bukcet: 1m", 7, "bukcet", "did you mean 'bucket'?"),
        ("event_time: at", "event_time: kind", 4, "views[0]", "leave it out there"),
        ('size: {string: "kind"}', 'size: {string: "size"}', 16, "select.size", "unknown column"),
        ('size: {string: "kind"}', 'batch: {string: "kind"}', 4, "views[0]", "own names"),
        ('size: {string: "kind"}', 'kind: {string: "shop"}', 4, "views[0]", "declared twice"),
        ('size: {string: "kind"}', 'size: {int: "points"}', 16, "select.size", "unknown type"),
        ('size: {string: "kind"}', "size: kind", 16, "select.size", "dictionary"),
        ('size: {string: "kind"}', "size: {string: rand()}", 16, "select.size", "not taken"),
        ('size: {string: "kind"}', "size: {string: a, bigint: b}", 16, "select.size", "a type and"),
        ('size: {string: "kind"}', "size: {string: [a]}", 16, "select.size", "valid string"),
        ("source:", "sourec:", 2, "sourec", "did you mean 'source'?"),
        ("{kind: files}", "{kind: files, inptu: x}", 2, "inptu", "did you mean 'input'?"),
        ("    event_time: at\n", "    event_time: at\n    event_time: at\n", 7, "", "stands twice"),
        ("kind: string\n", "kind: string\n      kind: bigint\n", 10, "", "'kind' stands twice"),
        ("{count: {}, over: [1h]}", "{count: {}, count: {}, over: [1h]}", LINE, "", "stands twice"),
        ("{kind: files}", "&a {kind: files}\nrefresh: *a", 3, "", "aliases"),
        ("{kind: files}", "!!python/name:os.system {kind: files}", 2, "", "tags"),
        ("kind: string\n", "kind: !!timestamp x\n", 9, "", "tags"),
        ("kind: string\n", "kind: !!bool x\n", 9, "", "tags"),
    ],
)  # fmt: skip
def test_a_wrong_view_in_a_file(
    tmp_path: Path, old: str, new: str, line: int, field: str, message: str
) -> None:
    assert old in FILE
    error = refused(tmp_path, FILE.replace(old, new, 1))
    assert message in str(error)
    assert str(error.where).startswith(f"{tmp_path / 'mine.yaml'}:{line}")
    assert field in str(error.where)


def test_a_key_that_is_selected_may_not_be_absent(tmp_path: Path) -> None:
    text = FILE.replace("keys: [card]", "keys: [size]").replace("{string:", '{"string?":')
    error = refused(tmp_path, text)
    assert "key 'size' may not be absent" in str(error)
    assert str(error.where).endswith(":16: views[0].select.size")


@pytest.mark.parametrize("key", ["count", "Count_1H"])
def test_a_feature_may_not_take_the_name_of_a_key(tmp_path: Path, key: str) -> None:
    error = refused(tmp_path, FILE.replace("card", key))
    assert "which is a key: give it a name" in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\npipeline: *c\n",
        "[" * 5000,
        "a: " + "{a: " * 3000 + "1" + "}" * 3000,
        "pipeline: !!binary aGk=\n",
        "? [a]\n: b\n",
        "pipeline: 2026-13-45\n",
        "pipeline: " + "9" * 5000 + "\n",
        "\ufeff\x07",
        "pipeline: \"\\ud800\"\nsource: {kind: files}\nviews: []\n",
        "pipeline: a\n---\npipeline: b\n",
        FILE.replace("sales", '"sa\\ud800les"'),
        FILE.replace("source", '"so\\nur\\u202ece\\ud800"'),
    ],
)  # fmt: skip
def test_no_file_is_worse_than_a_wrong_one(tmp_path: Path, text: str) -> None:
    refused(tmp_path, text)


# -- hostile text --------------------------------------------------------------------------------

NASTY = "'\"`;\\${}()[]*-/%:,.|&<>=#@!? \t\n\r\0\x1b\u202e\u2028\u00a0éß漢😀"
PLACES: list[tuple[str | int, ...]] = [
    ("pipeline",),
    ("source", "kind"),
    ("refresh",),
    ("views", 0, "name"),
    ("views", 0, "keys", 0),
    ("views", 0, "event_time"),
    ("views", 0, "source"),
    ("views", 0, "bucket"),
    ("views", 0, "history"),
    ("views", 0, "keep_empty"),
    ("views", 0, "when_empty"),
    ("views", 0, "schema", "kind"),
    ("views", 0, "select", "size", "string"),
    ("views", 0, "features", 0, "name"),
    ("views", 0, "features", 0, "where"),
    ("views", 0, "features", 0, "offset"),
    ("views", 0, "features", 0, "over", 0),
    ("views", 0, "features", 0, "sum", "of"),
    ("views", 0, "features", 0, "sum", "scale"),
    ("views", 0, "features", 0, "sum", "by"),
    ("views", 0, "features", 0, "sum", "by", "kind", 0),
    ("views", 0, "features", 1, "ratio", "of"),
]
KEYS: list[tuple[str | int, ...]] = [
    (),
    ("source",),
    ("views", 0),
    ("views", 0, "schema"),
    ("views", 0, "select"),
    ("views", 0, "select", "size"),
    ("views", 0, "features", 0),
    ("views", 0, "features", 0, "sum"),
    ("views", 0, "features", 0, "sum", "by"),
]


def hostile(seed: str) -> list[str]:
    drawn = random.Random(seed)
    made = ["".join(drawn.choices(NASTY, k=drawn.randint(1, 30))) for _ in range(14)]
    known = ["x; DROP TABLE y", "x' OR '1'='1", "x) FROM y --", "${env:HOME}", "", "(" * 2000]
    return [*made, *known]


def whole() -> dict[str, Any]:
    summed = {"of": "amount", "scale": 2, "by": {"kind": ["buy"]}}
    words: dict[str, Any] = yaml.safe_load(FILE)
    words["views"][0]["features"] = [
        {"sum": summed, "over": ["1h"], "where": "ok", "offset": "1h", "name": "s"},
        {"ratio": {"of": "buy_s_sum", "to": "buy_s_sum"}, "over": ["1h"], "name": "r"},
    ]
    return words


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_hostile_text_is_no_value(tmp_path: Path, path: tuple[str | int, ...]) -> None:
    for text in hostile(str(path)):
        words = whole()
        inner: Any = words
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = text
        refused(tmp_path, yaml.safe_dump(words, sort_keys=False))


@pytest.mark.parametrize("path", KEYS, ids=lambda path: ".".join(map(str, path)) or "file")
def test_hostile_text_is_no_word(tmp_path: Path, path: tuple[str | int, ...]) -> None:
    for text in hostile(str(path)):
        words = whole()
        inner: Any = words
        for step in path:
            inner = inner[step]
        inner[text] = "string"
        refused(tmp_path, yaml.safe_dump(words, sort_keys=False))


def test_hostile_text_over_an_empty_window_stays_in_its_quotes() -> None:
    for text in hostile("empty"):
        try:
            column = declare([last("shop").over("1h").empty(text)]).shown[0]
        except ValidationError:
            continue
        assert column.empty[0] == column.empty[-1] == "'"
        assert "'" not in column.empty[1:-1].replace("\\'", "")
        assert not {*"$\\\n\0"} & {*text}
