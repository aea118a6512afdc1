"""A user's SQL: what is taken means on Spark what it meant, and what could mean another thing
tomorrow, or elsewhere, is refused."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from tidemill.features.expressions.row_expression import FUNCTIONS, checked, columns_of

TYPES = {
    "card": "STRING",
    "shop": "STRING",
    "amount": "DOUBLE",
    "points": "BIGINT",
    "price": "DECIMAL(10,3)",
    "ok": "BOOLEAN",
    "at": "TIMESTAMP",
}
NIGHT = datetime(2026, 11, 21, 23, 59, 59, 999999, tzinfo=timezone.utc)
MORNING = datetime(2024, 2, 29, 6, 30, tzinfo=timezone.utc)
ROWS = [
    ("a", "x_y", 1.5, 3, Decimal("1.500"), True, NIGHT),
    ("A%b", "it's", -0.25, -7, Decimal("-0.001"), False, MORNING),
    ("c\\d", '"x"', 1e20, 0, Decimal("9999999.999"), None, MORNING),
    ("é漢\t", "", float("nan"), 2**40, Decimal("0.000"), True, NIGHT),
    ("12", None, None, None, None, None, None),
    (None, "b,c,d", 100.0, 100, Decimal("12.345"), False, MORNING),
]
CONDITIONS = """
ok
NOT ok
!ok
ok = true
ok <=> null
ok IS TRUE OR ok IS NOT FALSE
ok IS NULL AND points IS NOT NULL
card = 'a' AND shop != 'b' OR points <> 3
card = 'a' AND (shop != 'b' OR points == 3)
NOT (ok AND points > 1)
NOT ok AND points > 1
(points > 1) = ok
card IS DISTINCT FROM shop
card IS NOT DISTINCT FROM shop
points BETWEEN -7 AND 3
points NOT BETWEEN -7 AND 3 AND ok
card IN ('a', 'A%b', NULL)
card NOT IN ('a', 'b')
(card, shop) IN (('a', 'x_y'), ('b', 'c'))
card LIKE '%a'
card LIKE 'A\\%b'
card LIKE 'A/%b' ESCAPE '/'
card NOT LIKE '_'
card ILIKE 'a%B'
card ILIKE ANY ('a', '%B')
card LIKE ALL ('%', '_')
card RLIKE '^[a-z]$'
card RLIKE '^\\\\d+$'
card REGEXP '[0-9]'
regexp_like(card, '\\\\d')
card = 'c\\\\d'
shop = 'it\\'s'
shop = "it's"
shop = '"x"'
shop = "\\"x\\""
card = 'é漢\\t'
card = '\\u00e9\\u6f22\\t'
card = '\\d' OR card = '\\%' OR card = '\\_'
`card` = 'a'
points + 1 > 3 * 2 - -1
points - (1 - 2) > 0
points - 1 - 2 > 0
points * (2 + 1) = 9
-points > - -1
-(points + 1) < 0
points & 1 | 2 ^ 3 = 3
~points = -4
points % 4 = 3
mod(points + 1, 4) = 0
points DIV 2 = 1
(points + 1) DIV 2 * 3 = 6
amount / 2 > 0.5
points / 2 = 1.5
points / 4 * 2 = 1.5
price / 3 > 0.1
price * price > 2.25
amount > 1e2 OR amount < .5
amount > 1.5D
price = 1.5BD
points = 3L
price > 12.3449999
points << 2 = 12
points >> 1 = 1
card || shop = 'ax_y'
at >= '2026-11-21'
at >= TIMESTAMP '2026-11-21 00:00:00'
at < DATE '2026-11-21'
at - INTERVAL 1 DAY < TIMESTAMP '2026-11-21'
at + INTERVAL '90' MINUTE > TIMESTAMP '2026-11-22'
at + INTERVAL '1-2' YEAR TO MONTH > TIMESTAMP '2026-11-22'
CASE WHEN points > 1 THEN ok ELSE false END
CASE card WHEN 'a' THEN true WHEN 'b' THEN false END
CASE WHEN ok THEN 1 WHEN NOT ok THEN 2 END = 1
if(ok, points > 1, points < 1)
CAST(points AS BOOLEAN)
points::string = '3'
TRY_CAST(card AS INT) = 12
CAST(amount AS DECIMAL(30, 2)) IS NOT NULL OR ok
split(shop, ',')[0] = 'b'
""".strip().splitlines()
VALUES = """
abs(points); array_contains(split(shop, ','), 'c'); ascii(card); bround(price, 1)
cast(points AS STRING); ceil(price); ceiling(price, 1); char_length(card); coalesce(card, shop, 'n')
concat(card, '-', shop); concat_ws('-', card, shop); contains(shop, 'c'); date_trunc('hour', at)
date_trunc('WEEK', at); day(at); dayofmonth(at); dayofweek(at); dayofyear(at)
decode(card, 'a', 'one', 'none'); degrees(amount); div(points, 2); element_at(split(shop, ','), 1)
endswith(shop, 'y'); exp(points); floor(price); floor(price, 1); format_number(price, 2)
from_unixtime(points); from_unixtime(points, 'yyyy'); greatest(points, 2); hash(card, points)
hex(points); hour(at); if(ok, 1, 2); ifnull(card, shop); initcap(card)
instr(shop, '_'); isnan(amount); isnotnull(card); isnull(card); least(points, 2); left(shop, 2)
length(card); levenshtein(card, shop); ln(amount); locate('y', shop); locate('y', shop, 2)
log(2, amount); log(amount); log10(amount); log10(1000); log2(8); log2(amount); lower(card)
lpad(card, 5, '*'); lpad(card, 3); ltrim(card); ltrim('a', card); md5(card); minute(at)
mod(points, 4); month(at); nanvl(amount, 0); negative(points); nullif(points, 3); nvl(card, 'x')
nvl2(card, 'x', 'y'); overlay(shop PLACING '--' FROM 2); overlay(shop, '--', 2, 1)
pmod(points, 4); positive(points); pow(points, 2); power(points, 2); quarter(at); radians(amount)
regexp_count(shop, '[a-z]'); regexp_extract(shop, '([a-z]).([a-z])')
regexp_extract(shop, '[a-z]', 0); regexp_extract(shop, '([a-z]).([a-z])', 2)
regexp_instr(shop, ','); regexp_like(shop, 'x.y'); regexp_replace(shop, '[a-z]', '\\$0')
regexp_replace(shop, '(.),', '$1'); repeat(card, 2); replace(shop, 'x', 'z'); replace(shop, 'x')
reverse(card); right(shop, 2); rint(amount); round(price, 1); round(price); rpad(card, 5, '*')
rpad(card, 3); rtrim(card); second(at); sha1(card); sha(card); shiftleft(points, 2)
shiftright(points, 1); sha2(card, 256); sign(points); signum(points); size(split(shop, ','))
split(shop, ','); split(shop, ''); split(shop, '[,_]', 2); split_part(shop, ',', 2); sqrt(points)
startswith(shop, 'x'); position('y' IN shop); position('y', shop); substr(shop, 2)
substr(shop, 2, 1); substring(shop, -2); substring(shop, -2, 1); substring(shop FROM 2 FOR 1)
substring_index(shop, ',', 1); translate(shop, 'xy', 'z'); trim(card); trim(BOTH 'x' FROM shop)
trunc(at, 'MM'); trunc(at, 'YEAR'); try_add(points, 1); try_cast(card AS INT)
try_divide(points, 0); try_multiply(points, 2); try_subtract(points, 1); try_to_number(card, '99')
try_to_timestamp('2026-11-21 12:30'); try_to_timestamp(shop, 'yyyy'); typeof(price)
typeof(points / 2)
unix_micros(at); unix_millis(at); unix_seconds(at); upper(card); weekday(at); weekofyear(at)
width_bucket(amount, 0, 10, 5); xxhash64(card); year(at)
"""
REFUSED = [
    ("card = (SELECT 'a')", "'subquery'"),
    ("EXISTS (SELECT 1)", "'exists'"),
    ("card IN (SELECT 'a')", "'subquery'"),
    ("SELECT ok", "'select'"),
    ("ok UNION SELECT true", "'union'"),
    ("max(amount) > 1", "'max'"),
    ("count(*) > 1", "'count'"),
    ("any_value(ok)", "'any_value'"),
    ("sum(points) OVER () > 1", "'window'"),
    ("row_number() OVER (ORDER BY at) = 1", "'window'"),
    ("exists(split(card, ','), x -> x = 'a')", "'exists'"),
    ("transform(split(card, ','), x -> 'a')[0] = 'a'", "'transform'"),
    ("explode(split(card, ',')) = 'a'", "'explode'"),
    ("*", "'star'"),
    ("struct(*) IS NULL", "'struct'"),
    ("sales.card = 'a'", "unknown column 'sales.card'"),
    ("a.b.sales.card = 'a'", "unknown column"),
    ("crad = 'a'", "unknown column 'crad' in \"crad = 'a'\"; did you mean 'card'?"),
    ("Card = 'a'", "did you mean 'card'?"),
    ("`ca``rd` = 'a'", "unknown column"),
    ("rand() > 0.5", "'rand'"),
    ("`rand`() > 0.5", "'anonymous'"),
    ("random() > 0.5", "'random'"),
    ("uuid() = card", "'uuid'"),
    ("shuffle(split(card, ','))[0] = 'a'", "'shuffle'"),
    ("monotonically_increasing_id() = 1", "'monotonically_increasing_id'"),
    ("typeof(rand()) = 'x'", "'rand'"),
    ("if(rand() > 1, ok, ok)", "'rand'"),
    ("now() > at", "'now'"),
    ("current_timestamp() > at", "'current_timestamp'"),
    ("current_timestamp > at", "'current"),
    ("current_date > at", "'current"),
    ("localtimestamp > at", "localtimestamp"),
    ("curdate() > at", "date"),
    ("unix_timestamp() > 1", "'unix_timestamp'"),
    ("date_trunc('day', now()) = at", "'now'"),
    ("current_user() = card", "current_user"),
    ("current_user = card", "current"),
    ("session_user = card", "session"),
    ("current_catalog() = card", "'current_catalog'"),
    ("version() = card", "'version'"),
    ("input_file_name() = card", "'input_file_name'"),
    ("java_method('java.lang.System', 'exit') = 'x'", "'java_method'"),
    ("reflect('java.util.UUID', 'randomUUID') = 'x'", "'reflect'"),
    ("raise_error('x') IS NULL", "'raise_error'"),
    ("assert_true(ok) IS NULL", "'assert_true'"),
    ("ai_query('m', card) = 'x'", "'ai_query'"),
    ("secret('a', 'b') = card", "'secret'"),
    ("nofun(card)", "'nofun'"),
    ("lowr(card) = 'a'", "did you mean 'lower'?"),
    ("spark_catalog.default.lower(card) = 'a'", "'dot'"),
    ("a.lower(card) = 'a'", "'dot'"),
    ("card:lower = 'a'", "is not taken"),
    ("card = :as_of", "'placeholder'"),
    ("card = ?", "'placeholder'"),
    ("card = @x", "'parameter'"),
    ("ok ? 'a'", "is not taken"),
    ("card ->> 'a' = 'b'", "is not"),
    ("card = '${env:HOME}'", "holds ${"),
    ("card = '${spark.app.name}'", "holds ${"),
    ("ok AS other", "'alias'"),
    ("ok, ok", "is no SQL expression"),
    ("ok LIMIT 1", "is no SQL expression"),
    ("ok FROM x", "is no SQL expression"),
    ("ok) FROM x --", "is no SQL expression"),
    ("card = 'a'; DROP TABLE x", "is not one SQL expression"),
    ("DROP TABLE x", "is not"),
    ("SET x = 1", "is not"),
    ("ok AND", "is no SQL expression"),
    ("card = 'a", "is no SQL expression"),
    ("card = 'it''s'", "two texts side by side: write \\' for a quote"),
    ("card = 'it' 's'", "two texts side by side"),
    ('card = "it""s"', "two texts side by side"),
    ("card = 'a' /*", "is no SQL expression"),
    ("card = \\'a\\'", "is no SQL expression"),
    ("ok\nAND ok", "one line"),
    ("ok\tAND ok", "one line"),
    ("card = '\u202e'", "one line"),
    ("card = '\ud800'", "one line"),
    ("ok AND " * 600 + "ok", "at most 4096"),
    ("", "is not one SQL expression"),
    ("-- ok", "is not"),
    ("(" * 2000 + "ok" + ")" * 2000, "nested so deeply"),
    ("NOT " * 1000 + "ok", "nested so deeply"),
    ("card", "is no condition"),
    ("points", "is no condition"),
    ("points + 1", "is no condition"),
    ("length(card)", "is no condition"),
    ("(card, ok)", "is no condition"),
    ("CAST(ok AS INT)", "is no condition"),
    ("'true'", "is no condition"),
    ("1", "is no condition"),
    ("NULL", "is no condition"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=lambda text: text[:40])
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        checked(text, TYPES, condition=True)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("ok -- AND rand() > 1", "ok"),
        ("ok /* ) FROM x */ AND ok", "ok AND ok"),
        ("/*+ BROADCAST(x) */ ok", "ok"),
        ("ok;", "ok"),
        ("(ok)", "(ok)"),
        ("- -points > 0", "- -points > 0"),
        ("card = '--' AND ok", "card = '--' AND ok"),
        ("card = '{of} {where} $keys :as_of'", "card = '{of} {where} $keys :as_of'"),
        ("card = ' ; DROP TABLE x'", "card = ' ; DROP TABLE x'"),
    ],
)
def test_comments_are_left_out_and_texts_stay_texts(text: str, rewritten: str) -> None:
    assert checked(text, TYPES, condition=True) == rewritten


def expressions() -> list[str]:
    values = [one.strip() for line in VALUES.strip().splitlines() for one in line.split(";")]
    return [*CONDITIONS, *filter(None, values)]


def test_every_function_is_tried() -> None:
    assert not FUNCTIONS - {w.lower() for text in expressions() for w in re.findall(r"\w+", text)}


def test_what_was_written_again_is_written_the_same_again() -> None:
    for text in expressions():
        once = checked(text, TYPES)
        assert checked(once, TYPES) == once
        assert columns_of(once) <= {*TYPES}
    for text in CONDITIONS:
        checked(checked(text, TYPES, condition=True), TYPES, condition=True)


def test_spark_makes_the_same_of_what_is_written_again(spark: SparkSession) -> None:
    schema = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    frame = spark.createDataFrame(ROWS, schema).coalesce(1)
    texts = expressions()
    pairs = [(text, checked(text, TYPES)) for text in texts]
    same = [
        f"every(({one}) IS NOT DISTINCT FROM ({other})) AND "
        f"max(typeof({one})) = max(typeof({other})) AS same{n}"
        for n, (one, other) in enumerate(pairs)
    ]
    found = frame.selectExpr(*same).collect()[0]
    assert [pair for pair, equal in zip(pairs, found, strict=True) if not equal] == []
