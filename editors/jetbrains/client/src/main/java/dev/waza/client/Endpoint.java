package dev.waza.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/**
 * Connects a client to its daemon. Each call makes a new connection; a client calls it from its
 * owner thread.
 */
public interface Endpoint {
  /**
   * Opens a connection.
   *
   * @throws IOException if that fails; a {@link DaemonException} states whether it can ever succeed
   */
  Link open() throws IOException;

  /** One connection. */
  interface Link {
    /** Output of the daemon. */
    InputStream in();

    /** Input of the daemon. */
    OutputStream out();

    /** The daemon's last output outside of the protocol, for a person; empty if none. */
    String lastWords();

    /**
     * Ends the connection and everything that belongs only to it, by force if the end of {@link
     * #out}, which the caller has closed, was not enough. It blocks until everything has ended, at
     * most some seconds. Calling it again has no effect.
     */
    void close();
  }
}
