# Databricks notebook source
# MAGIC %md
# MAGIC # Train a model
# MAGIC Rows with a time and a label, the features as they were at that time, a model of them, and the same
# MAGIC features for its first prediction. Needs scikit-learn.
# MAGIC
# MAGIC Runs as a notebook, and as a script:
# MAGIC `TIDEMILL_ROOT=tidemill-demo python notebooks/06_train_a_model.py`; see 01_tour for Databricks.

# COMMAND ----------

import tempfile

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import tidemill

lake = tidemill.open_lake()  # in the notebook's own session, else in a local one
FEATURES = [column.name for column in lake.view("engagement").columns]

# COMMAND ----------

# MAGIC %md
# MAGIC ## The spine
# MAGIC A row for each highlight of a title: does the same profile view it within the hour that follows? The
# MAGIC hour of the newest events is left out, as its labels are not known yet.

# COMMAND ----------

spine = lake.sql(
    """
    WITH highlights AS (
      SELECT DISTINCT
        profile_id,
        gti,
        event_timestamp AS timestamp
      FROM engagement_events
      WHERE event_type = 'highlight'
    ),
    newest AS (
      SELECT max(event_timestamp) - INTERVAL 1 HOUR AS labelled_until FROM engagement_events
    )
    SELECT
      highlights.profile_id,
      highlights.gti,
      highlights.timestamp,
      CAST(count(views.record_id) > 0 AS INT) AS viewed
    FROM highlights
    CROSS JOIN newest
    LEFT JOIN engagement_events AS views
      ON views.profile_id = highlights.profile_id
      AND views.gti = highlights.gti
      AND views.event_type = 'view'
      AND views.event_timestamp > highlights.timestamp
      AND views.event_timestamp <= highlights.timestamp + INTERVAL 1 HOUR
    WHERE highlights.timestamp <= newest.labelled_until
    GROUP BY
      highlights.profile_id,
      highlights.gti,
      highlights.timestamp
    """
)
spine.groupBy("viewed").count().show()

# COMMAND ----------

# MAGIC %md
# MAGIC ## The features at that time
# MAGIC `mode="event"`: what was true at the edge, the last whole minute at or before the row's time. No event
# MAGIC of that minute or later is in a value, so the label is not either.

# COMMAND ----------

training = lake.training_set(spine, "engagement")
rows = training.orderBy("timestamp", "profile_id", "gti").toPandas()
assert len(rows) == spine.count()
rows.head()

# COMMAND ----------

# MAGIC %md DuckDB counts some of them again, from the events.

# COMMAND ----------

files = lake.duckdb("engagement_events")
some = training.selectExpr(
    "profile_id", "gti", "unix_seconds(timestamp) DIV 60 * 60 AS edge", "view_count_1h AS views"
)
for row in some.orderBy("edge", "profile_id", "gti").limit(40).collect():
    counted = files.execute(
        """
        SELECT count(*)
        FROM engagement_events
        WHERE profile_id = $profile_id
          AND gti = $gti
          AND event_type = 'view'
          AND epoch(event_timestamp) >= $edge - 3600
          AND epoch(event_timestamp) < $edge
        """,
        {"profile_id": row.profile_id, "gti": row.gti, "edge": row.edge},
    ).fetchone()
    assert counted[0] == row.views, row

# COMMAND ----------

# MAGIC %md
# MAGIC ## The model
# MAGIC Trained on the earlier rows, tried on the later ones, as it will be used.

# COMMAND ----------

split = len(rows) * 7 // 10
model = make_pipeline(
    FunctionTransformer(np.log1p), StandardScaler(), LogisticRegression(max_iter=1000)
)
model.fit(rows[FEATURES][:split], rows["viewed"][:split])
later = rows[split:].assign(expected=model.predict_proba(rows[FEATURES][split:])[:, 1])
share, expected = later["viewed"].mean(), later["expected"].mean()
print(f"viewed of the later rows: {share:.2f}, the model expects {expected:.2f}")

# COMMAND ----------

# MAGIC %md Where the model expects more views there are more: the later rows in five parts, by what it expects.

# COMMAND ----------

later["part"] = (
    later["expected"].rank(method="first", pct=True).mul(5).clip(upper=4.999).astype(int) + 1
)
parts = later.groupby("part")[["expected", "viewed"]].mean()
tidemill.show(
    tidemill.chart(
        ["part", "expected", "viewed"],
        [(f"{part}", each["expected"], each["viewed"]) for part, each in parts.iterrows()],
        title="What the model expects, and what came",
        labels={"part": "fifths, the least expected first", "value": "share that is viewed"},
    ),
    "06_expected",
)

# COMMAND ----------

# MAGIC %md
# MAGIC ## The same values at prediction time
# MAGIC What a prediction reads: the online store, here a file of its own, brought to gold and asked by the
# MAGIC client that also asks `tidemill serve`.

# COMMAND ----------

store = f"{tempfile.mkdtemp()}/online.sqlite"
(published,) = lake.publish("engagement", store=store)
print(f"{published['keys']:,} keys, as of {published['as_of']}")

columns = ["profile_id", "gti"]
some = lake.table("engagement_current").select(*columns).orderBy(*columns).limit(1000).toPandas()
client = tidemill.FeatureClient(store, limits={"stale_after": "10d", "refuse_after": "3650d"})
answer = client.features("engagement", some.to_dict("records"))
served = pd.DataFrame([{**row["key"], **row["values"]} for row in answer["rows"]])
served = served[[*columns, *FEATURES]]

# COMMAND ----------

# MAGIC %md And what a training set says of the same keys at the same time: value by value the same.

# COMMAND ----------

keys = lake.spark.createDataFrame(some.assign(timestamp=pd.Timestamp(published["as_of"])))
trained = lake.training_set(keys, "engagement").select(*columns, *FEATURES)
trained = trained.orderBy(*columns).toPandas()
assert served.equals(trained)

# COMMAND ----------

# MAGIC %md The model's first predictions: who is likeliest to view a title, if it is highlighted now.

# COMMAND ----------

served["expected"] = model.predict_proba(served[FEATURES])[:, 1]
likeliest = served.sort_values("expected", ascending=False).head(5)
print(likeliest[["profile_id", "gti", "expected"]].to_string(index=False))
