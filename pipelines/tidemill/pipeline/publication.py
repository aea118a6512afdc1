"""Publishing as a pipeline's file asks for it: after a refresh, the online store follows gold.

Gold is committed before; a store that does not answer cannot undo or delay it by more than its time
limits, and the next publish brings what is missing.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path

from tidemill.config.publishing import Publishing
from tidemill.errors import DefinitionError, StoreError
from tidemill.features import FeatureView
from tidemill.features.windows import duration
from tidemill.lake.catalog import Lake
from tidemill.online import publish as publishing
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.store import OnlineStore
from tidemill.online.store_address import FILE_NAME, StoreAddress

log = logging.getLogger(__name__)


def publish_view(lake: Lake, view: FeatureView) -> None:
    """Bring the pipeline's online store to the view's gold; without `publish` do nothing.

    With `on_failure: stop` a store that does not answer ends the batch, by StoreError.
    """
    said = lake.pipeline.publish
    if said is None or not said.of(view):
        return
    try:
        publishing.publish(
            lake,
            view,
            address_of(lake, said),
            ttl=said.ttl_of(view),
            within=duration(said.within),
        )
    except StoreError as error:
        if said.on_failure == "stop":
            raise
        log.warning("publish %s: %s; the next one brings what is missing", view.name, error)


@dataclass(frozen=True)
class StoreState:
    """What an online store says of a view: its state, None where it has none of a whole publish;
    the seconds by which that is behind gold, NaN without; why the store did not answer."""

    view: str
    state: PublishedView | None
    behind: float = math.nan
    problem: str | None = None


def lags(lake: Lake) -> dict[str, float]:
    """Return, for each view that is published, the seconds by which the store's as_of is behind
    gold's; NaN while the store does not answer or has nothing of it."""
    said = lake.pipeline.publish
    return {each.view: each.behind for each in store_states(lake, said)} if said else {}


def store_states(lake: Lake, said: Publishing) -> list[StoreState]:
    """Return what the store says of each view that is published there."""
    store = open_store(address_of(lake, said))
    try:
        return [_state(lake, view, store) for view in lake.pipeline.views if said.of(view)]
    finally:
        store.close()


def _state(lake: Lake, view: FeatureView, store: OnlineStore) -> StoreState:
    try:
        state = store.view(view.name)
    except StoreError as error:
        return StoreState(view.name, None, problem=error.message)
    if state is None or not state.is_whole:
        return StoreState(view.name, None)
    gold = lake.gold_state(view).as_of
    behind = math.nan if gold is None else (gold - state.as_of).total_seconds()
    return StoreState(view.name, state, behind)


def address_of(lake: Lake, said: Publishing, store: str | None = None) -> StoreAddress:
    """Return where the pipeline's store is, or `store` with the same ways to connect; a file in the
    lake's folder where nothing is said of it."""
    url = store or said.store
    if url is None:
        if lake.place.folder is None:
            raise DefinitionError(
                "a lake in a catalog has no folder for an online store",
                where="publish.store",
                expected="the address of a Redis, such as redis://HOST:6379/0",
            )
        url = str(lake.place.folder.absolute() / FILE_NAME)
    address = StoreAddress(
        url,
        said.username_env,
        said.password_env,
        said.ca_file,
        said.connect_seconds,
        said.answer_seconds,
        said.allow_eviction,
    )
    return address if address.is_redis else _absolute(address)


def _absolute(address: StoreAddress) -> StoreAddress:
    return StoreAddress(str(Path(address.path).absolute()))
