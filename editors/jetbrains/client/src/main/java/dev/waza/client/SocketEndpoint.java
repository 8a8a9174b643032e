package dev.waza.client;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;

/** A daemon that somebody else started with {@code waza jsonrpc --tcp}. */
public final class SocketEndpoint implements Endpoint {
  private static final int CONNECT_MILLIS = 10_000;

  private final InetSocketAddress address;

  /** Sets the address of the daemon. */
  public SocketEndpoint(InetSocketAddress address) {
    this.address = address;
  }

  @Override
  public Link open() throws IOException {
    Socket socket = new Socket();
    try {
      socket.connect(address, CONNECT_MILLIS);
      socket.setTcpNoDelay(true);
      return new Connected(socket, socket.getInputStream(), socket.getOutputStream());
    } catch (IOException e) {
      DaemonProcess.quietly(socket::close);
      throw new DaemonException("no daemon is listening at " + address + " (" + e.getMessage() + ")", false, e);
    }
  }

  private record Connected(Socket socket, InputStream in, OutputStream out) implements Link {
    @Override
    public String lastWords() {
      return "";
    }

    @Override
    public void close() {
      DaemonProcess.quietly(socket::close);
    }
  }
}
