package dev.waza.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** Where a client finds its daemon. Each call makes a new connection; a client calls it from its owner thread. */
public interface Endpoint {
  /**
   * Opens a connection.
   *
   * @throws IOException when that cannot be done; a {@link DaemonException} says whether it ever will
   */
  Link open() throws IOException;

  /** One connection. */
  interface Link {
    /** What the daemon says. */
    InputStream in();

    /** What the daemon hears. */
    OutputStream out();

    /** What the daemon said last outside of the protocol, for a person; empty when nothing. */
    String lastWords();

    /**
     * Ends the connection and all that belongs to it alone, by force where the end of {@link #out},
     * which the caller has closed, was not enough. It blocks until all is gone, some seconds at most;
     * calling it again does nothing.
     */
    void close();
  }
}
