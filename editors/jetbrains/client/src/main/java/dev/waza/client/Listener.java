package dev.waza.client;

import java.util.Map;

/** Who hears of what happens. All methods are called on the client's own thread, and must not block it. */
public interface Listener {
  /** How a client stands. */
  enum State {
    /** The daemon is being started. */
    STARTING,
    /** The daemon answers. */
    READY,
    /** The daemon died and will be started again after a while. */
    WAITING,
    /** There is no daemon, and none will be started until {@link WazaClient#start} is called again. */
    FAILED,
    CLOSED
  }

  /** Something happened in a run; the client's state of the run has it already. */
  default void event(RunEvent event) {}

  /** The daemon sent a notification that is about no run. */
  default void notification(String method, Map<String, Object> params) {}

  /**
   * The client stands otherwise.
   *
   * @param state how it stands now
   * @param why a sentence for a person where the daemon is not well; else empty
   */
  default void state(State state, String why) {}
}
