package dev.waza.client;

import java.util.Map;

/** Receives events. All methods are called on the client's own thread, and must not block it. */
public interface Listener {
  /** State of a client. */
  enum State {
    /** The daemon is starting. */
    STARTING,
    /** The daemon answers. */
    READY,
    /** The daemon died and restarts after a pause. */
    WAITING,
    /** There is no daemon, and none starts until {@link WazaClient#start} is called again. */
    FAILED,
    CLOSED
  }

  /** Something happened in a run; the client's state of the run already contains it. */
  default void event(RunEvent event) {}

  /** The daemon sent a notification that does not belong to a run. */
  default void notification(String method, Map<String, Object> params) {}

  /**
   * The state of the client changed.
   *
   * @param state the new state
   * @param why a sentence for a person if the daemon does not work; else empty
   */
  default void state(State state, String why) {}
}
