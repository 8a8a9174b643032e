package dev.waza.client;

import java.util.Map;

/** The daemon answered a request with an error. */
public final class RpcException extends Exception {
  private static final long serialVersionUID = 1;

  /** Codes of errors that clients distinguish; docs/methods.md documents all of them. */
  public static final long VALIDATION_FAILED = -32001;

  public static final long RUN_NOT_FOUND = -32003;

  private final long code;
  private final transient Map<String, Object> data;

  RpcException(Map<String, Object> error) {
    super(Json.string(error.get("message")));
    code = Json.number(error.get("code"));
    data = Json.object(error.get("data"));
  }

  public long code() {
    return code;
  }

  /** Returns the details of the error, which can be empty. */
  public Map<String, Object> data() {
    return data == null ? Map.of() : data;
  }
}
