"""The step `slices`: what batches added to hours in the online store, merged."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from tidemill.errors import StoreError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.operations.maintenance.step import Step, many
from tidemill.pipeline.event_slices.slice_batches import SliceWork
from tidemill.pipeline.publication import address_of

log = logging.getLogger(__name__)


def slices(lake: Lake, view: FeatureView) -> Iterator[Step]:
    """Yield the step that merges a view's slices, where it has some that are not merged; none while
    the store does not answer."""
    said = lake.pipeline.publish
    if said is None or not said.slices or not said.of(view):
        return
    work = SliceWork(lake, view, address_of(lake, said))
    try:
        state = work.state()
    except StoreError as error:
        log.warning("slices of %s: %s", view.name, error)
        return
    if state is None or state.compacted >= state.through:
        return

    def run() -> str:
        work.merge()
        return f"merged through batch {state.through}"

    reason = f"{many(state.through - state.compacted, 'batch', 'batches')} not merged"
    yield Step(f"{view.name} in the online store", "slices", reason, run)
